import assert from "node:assert/strict";
import { test } from "node:test";
import { LatencyModes } from "../../../static/js/live/latency-modes.js";

const MODES = [
  { mode_ms: 160, words: "Fastest · 160 ms" },
  { mode_ms: 560, words: "Most accurate · 560 ms" },
];

function inForce(modeMs) {
  const latency = new LatencyModes();
  latency.becomes({ modes: MODES, mode_ms: modeMs });
  return latency;
}

test("a wish is asked for until it is answered", () => {
  const latency = inForce(160);
  assert.equal(latency.message, null);
  latency.wish(560);
  assert.deepEqual(latency.message, { type: "set_mode", mode_ms: 560 });
  assert.equal(latency.modeMs, 160);
  latency.becomes({ modes: MODES, mode_ms: 560 });
  assert.equal(latency.message, null);
  assert.equal(latency.modeMs, 560);
});

test("a refusal leaves what was in force and says why", () => {
  const latency = inForce(160);
  latency.wish(560);
  latency.refuse({ mode_ms: 560, reason: "No engine answers." });
  assert.equal(latency.message, null);
  assert.equal(latency.modeMs, 160);
  assert.equal(latency.problem, "No engine answers.");
  latency.wish(560);
  assert.equal(latency.problem, "");
});

test("answers to an earlier wish do not end the later one", () => {
  const latency = inForce(160);
  latency.wish(560);
  latency.wish(160);
  latency.refuse({ mode_ms: 560, reason: "No." });
  assert.equal(latency.problem, "");
  latency.becomes({ modes: MODES, mode_ms: 560 });
  assert.deepEqual(latency.message, { type: "set_mode", mode_ms: 160 });
  latency.becomes({ modes: MODES, mode_ms: 160 });
  assert.equal(latency.message, null);
});

test("a wish outlives a lost connection", () => {
  const latency = inForce(160);
  latency.wish(560);
  latency.becomes({ modes: MODES, mode_ms: 160 }); // ready again
  assert.deepEqual(latency.message, { type: "set_mode", mode_ms: 560 });
});
