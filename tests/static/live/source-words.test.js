import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BOTH,
  MICROPHONE,
  SHARED,
  hearsMicrophone,
  hearsShared,
  sharingEnded,
  sharingObstacle,
  sharingRefusal,
  troubleSentence,
} from "../../../static/js/live/source-words.js";

function browser(constraints) {
  return { getDisplayMedia() {}, getSupportedConstraints: () => constraints };
}

test("each choice names what is heard", () => {
  assert.deepEqual([MICROPHONE, SHARED, BOTH].map(hearsMicrophone), [true, false, true]);
  assert.deepEqual([MICROPHONE, SHARED, BOTH].map(hearsShared), [false, true, true]);
});

test("a browser that shares no sound says so before anybody tries", () => {
  assert.equal(sharingObstacle(browser({ suppressLocalAudioPlayback: true })), "");
  assert.match(sharingObstacle(browser({ echoCancellation: true })), /pictures without their sound/);
  assert.match(sharingObstacle({}), /cannot share/);
  assert.match(sharingObstacle(undefined), /cannot share/);
});

test("a share without sound tells what to switch on", () => {
  assert.match(sharingRefusal({ name: "NoSoundError" }), /switch on/);
  assert.match(sharingRefusal({ name: "SomethingNew" }), /Try again/);
});

test("what is wrong with each source is said", () => {
  assert.equal(troubleSentence({ microphone: "", shared: "" }), "");
  assert.match(troubleSentence({ microphone: "ended", shared: "" }), /unplugged/);
  const both = troubleSentence({ microphone: "muted", shared: "silent" });
  assert.match(both, /muted by the computer.*No sound comes from what is shared/);
});

test("a share that ends says what is heard now", () => {
  assert.match(sharingEnded(BOTH), /Only the microphone/);
  assert.match(sharingEnded(SHARED), /paused/);
});
