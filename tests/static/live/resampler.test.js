import assert from "node:assert/strict";
import { test } from "node:test";
import { Resampler, downmix, toPcm16 } from "../../../static/js/live/resampler.js";

const TO = 16000;

function tone(rate, hertz, seconds) {
  return Float32Array.from({ length: rate * seconds }, (_, i) =>
    Math.sin((2 * Math.PI * hertz * i) / rate),
  );
}

function inBlocks(resampler, samples, length) {
  const parts = [];
  for (let at = 0; at < samples.length; at += length) {
    parts.push(...resampler.process(samples.subarray(at, at + length)));
  }
  parts.push(...resampler.flush());
  return Float32Array.from(parts);
}

function loudness(samples) {
  return Math.sqrt(samples.reduce((sum, value) => sum + value * value, 0) / samples.length);
}

for (const rate of [8000, 16000, 22050, 32000, 44100, 48000, 96000]) {
  test(`a tone of 1 kHz at ${rate} Hz keeps its place and height`, () => {
    const output = inBlocks(new Resampler(rate, TO), tone(rate, 1000, 1), 128);
    const wanted = tone(TO, 1000, 1);
    let worst = 0;
    for (let i = 200; i < TO - 200; i += 1) worst = Math.max(worst, Math.abs(output[i] - wanted[i]));
    assert.ok(worst < 1e-3, `largest difference ${worst}`);
  });

  test(`one second at ${rate} Hz is one second at 16 kHz`, () => {
    const output = inBlocks(new Resampler(rate, TO), tone(rate, 300, 1), 128);
    assert.ok(Math.abs(output.length - TO) <= 1, `${output.length} samples`);
  });
}

for (const rate of [44100, 48000]) {
  test(`what lies above 8 kHz at ${rate} Hz does not fold into speech`, () => {
    for (const hertz of [8100, 9000, 12000, 15000, 20000]) {
      const output = inBlocks(new Resampler(rate, TO), tone(rate, hertz, 0.5), 128);
      const level = loudness(output.subarray(200, output.length - 200));
      assert.ok(level < 2e-3, `${hertz} Hz came through at ${level}`);
    }
  });

  test(`speech up to 7 kHz passes at ${rate} Hz`, () => {
    for (const hertz of [60, 3000, 7000]) {
      const output = inBlocks(new Resampler(rate, TO), tone(rate, hertz, 0.5), 128);
      const level = loudness(output.subarray(400, output.length - 400)) * Math.SQRT2;
      assert.ok(Math.abs(level - 1) < 0.02, `${hertz} Hz came through at ${level}`);
    }
  });
}

test("blocks of any length give the same samples as one block", () => {
  const input = Float32Array.from({ length: 44100 }, (_, i) => Math.sin(i * i * 1e-4));
  const whole = inBlocks(new Resampler(44100, TO), input, input.length);
  for (const length of [1, 127, 128, 1000]) {
    assert.deepEqual(inBlocks(new Resampler(44100, TO), input, length), whole);
  }
});

test("ten minutes do not drift", () => {
  const resampler = new Resampler(44100, TO);
  let count = 0;
  const second = new Float32Array(44100);
  for (let i = 0; i < 600; i += 1) count += resampler.process(second).length;
  count += resampler.flush().length;
  assert.ok(Math.abs(count - 600 * TO) <= 1, `${count} samples`);
});

test("a stereo microphone becomes the mean of its channels", () => {
  assert.deepEqual(
    [...downmix([Float32Array.of(1, 0.5), Float32Array.of(0, -0.5)])],
    [0.5, 0],
  );
});

test("samples beyond full scale are clipped, not wrapped", () => {
  assert.deepEqual([...toPcm16(Float32Array.of(-2, -1, 0, 1, 2))], [-32768, -32768, 0, 32767, 32767]);
});
