import assert from "node:assert/strict";
import { test } from "node:test";
import { Mixer } from "../../../static/js/live/mixer.js";

const tone = (value) => new Float32Array(128).fill(value);

test("two sources become one channel, and each has its own level", () => {
  const mixer = new Mixer(2, 128);
  const mixed = mixer.mix([[tone(0.25)], [tone(0.5), tone(0.1)]]);
  assert.equal(mixed.length, 128);
  assert.ok(mixed.every((sample) => Math.abs(sample - 0.55) < 1e-6));
  const [microphone, shared] = mixer.takeLevels();
  assert.ok(Math.abs(microphone.rms - 0.25) < 1e-6 && Math.abs(microphone.peak - 0.25) < 1e-6);
  assert.ok(Math.abs(shared.rms - 0.3) < 1e-6 && Math.abs(shared.peak - 0.3) < 1e-6);
});

test("a source that is not there is silence, and changes nothing of the other", () => {
  const mixer = new Mixer(2, 128);
  assert.deepEqual(mixer.mix([[], [tone(0.5)]]), tone(0.5));
  assert.deepEqual(mixer.takeLevels()[0], { rms: 0, peak: 0 });
  assert.deepEqual(mixer.mix([[], []]), tone(0));
});

test("what came from a source is not written to", () => {
  const own = tone(0.5);
  new Mixer(2, 128).mix([[own], [tone(0.25)]]);
  assert.deepEqual(own, tone(0.5));
});

test("levels come once enough was heard, and begin anew", () => {
  const mixer = new Mixer(1, 200);
  mixer.mix([[tone(0.5)]]);
  assert.equal(mixer.takeLevels(), null);
  mixer.mix([[tone(0)]]);
  assert.equal(mixer.takeLevels()[0].peak, 0.5);
  mixer.mix([[tone(0)]]);
  mixer.mix([[tone(0)]]);
  assert.equal(mixer.takeLevels()[0].peak, 0);
});
