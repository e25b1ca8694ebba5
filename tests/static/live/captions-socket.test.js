import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { CaptionsSocket } from "../../../static/js/live/captions-socket.js";

const LOG_IN = 4401;
const NOT_FOUND = 4404;
const LONG_MS = 60_000;

class FakeSocket {
  static all = [];

  constructor(address) {
    this.address = String(address);
    FakeSocket.all.push(this);
  }

  close() {}
  send() {}

  say(event) {
    this.onmessage({ data: JSON.stringify(event) });
  }
}
globalThis.WebSocket = FakeSocket;

function connected(token = "") {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  FakeSocket.all = [];
  const socket = new CaptionsSocket("ws://localhost/captions", undefined, token);
  const phases = [];
  socket.addEventListener("connection", ({ detail }) => phases.push(detail));
  socket.connect();
  FakeSocket.all[0].say({ type: "ready", state: "live", seq: 0, title: "Planning" });
  return { phases, newest: () => FakeSocket.all.at(-1), count: () => FakeSocket.all.length };
}

test("captions come back by themselves when the person has logged in again", () => {
  const { phases, newest, count } = connected();
  for (let attempt = 1; attempt <= 20; attempt += 1) {
    newest().onclose({ code: LOG_IN });
    assert.deepEqual([phases.at(-1).phase, phases.at(-1).needsLogin], ["refused", true]);
    assert.equal(count(), attempt);
    mock.timers.tick(7000);
    assert.equal(count(), attempt + 1);
  }
  newest().say({ type: "ready", state: "live", seq: 0, title: "Planning" });
  assert.deepEqual(phases.at(-1), { phase: "open", reason: "" });
});

test("what is not this person's to see is not asked for again", () => {
  const { phases, newest, count } = connected();
  newest().say({ type: "error", code: "not_found", reason: "There is no such thing." });
  newest().onclose({ code: NOT_FOUND });
  assert.deepEqual(phases.at(-1), { phase: "refused", needsLogin: false, reason: "There is no such thing." });
  mock.timers.tick(LONG_MS);
  assert.equal(count(), 1);
});

test("a link that is refused is not shown again", () => {
  const { phases, newest, count } = connected("token");
  newest().onclose({ code: LOG_IN });
  assert.equal(phases.at(-1).needsLogin, false);
  mock.timers.tick(LONG_MS);
  assert.equal(count(), 1);
});
