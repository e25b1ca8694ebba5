import assert from "node:assert/strict";
import { test } from "node:test";
import { formatTimeOfDay } from "../../../static/js/times.js";

const AT = Date.UTC(2026, 10, 30, 15, 41);
const OWN = Intl.DateTimeFormat().resolvedOptions().timeZone;

test("a time of day is in the zone that is asked for", () => {
  assert.match(formatTimeOfDay(AT, "Asia/Tokyo"), /^(12|0?0):41/);
  assert.match(formatTimeOfDay(AT, "Asia/Kolkata"), /^(9|21):11/);
});

test("without a zone, or with one that the browser does not know, it is the browser's", () => {
  assert.equal(formatTimeOfDay(AT), formatTimeOfDay(AT, OWN));
  assert.equal(formatTimeOfDay(AT, "Mars/Olympus"), formatTimeOfDay(AT, OWN));
});
