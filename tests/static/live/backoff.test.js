import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "../../../static/js/live/backoff.js";

test("waiting times double up to five seconds", () => {
  const backoff = new Backoff(() => 0.5);
  const waits = Array.from({ length: 6 }, () => backoff.next());
  assert.deepEqual(waits, [400, 800, 1600, 3200, 5000, 5000]);
  backoff.reset();
  assert.equal(backoff.next(), 400);
});

test("many pages do not come back at one moment", () => {
  assert.equal(new Backoff(() => 0).next(), 300);
  assert.equal(new Backoff(() => 1).next(), 500);
});
