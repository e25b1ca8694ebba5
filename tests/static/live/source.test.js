import assert from "node:assert/strict";
import { test } from "node:test";
import { Source } from "../../../static/js/live/source.js";

class Track extends EventTarget {
  readyState = "live";
  muted = false;

  stop() {
    this.readyState = "ended";
  }
}

class Stream {
  track = new Track();

  getTracks() {
    return [this.track];
  }

  getAudioTracks() {
    return [this.track];
  }
}

function opened(silentAfterMs = 2500) {
  const source = new Source(0, silentAfterMs);
  const stream = new Stream();
  const looked = [];
  source.use(stream, 0, () => looked.push(source.trouble(100)));
  return { source, track: stream.track, looked };
}

test("zeros alone are a fault after a while, any sound ends it", () => {
  const { source } = opened();
  source.hear({ peak: 0 }, 2400);
  assert.equal(source.trouble(2400), "");
  assert.equal(source.trouble(2600), "silent");
  source.hear({ peak: 0.001 }, 2700);
  assert.equal(source.trouble(2800), "");
});

test("a muted track and an ended one are told at once", () => {
  const { track, looked } = opened();
  track.muted = true;
  track.dispatchEvent(new Event("mute"));
  track.readyState = "ended";
  track.dispatchEvent(new Event("ended"));
  assert.deepEqual(looked, ["muted", "ended"]);
});

test("a new stream lets the one before go", () => {
  const { source, track } = opened();
  source.use(new Stream(), 5000, () => {});
  assert.equal(track.readyState, "ended");
  assert.equal(source.trouble(5100), "");
});

test("what is not open has no trouble", () => {
  const { source, track } = opened();
  source.letGo();
  assert.equal(track.readyState, "ended");
  assert.equal(source.isOpen, false);
  assert.equal(source.trouble(99_999), "");
});
