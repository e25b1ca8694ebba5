import assert from "node:assert/strict";
import { test } from "node:test";
import { CaptionStore } from "../../../static/js/live/caption-store.js";

function final(utterance, seq, text = `text ${utterance}`) {
  const start = utterance * 1000;
  return { type: "final", utterance, seq, start_ms: start, end_ms: start + 900, text };
}

function partial(utterance, text) {
  return { type: "partial", utterance, start_ms: utterance * 1000, end_ms: 0, text };
}

function texts(store) {
  return store.entries.map((entry) => entry.text ?? entry.kind);
}

test("finals stand in the order they were spoken, however they arrive", () => {
  const store = new CaptionStore();
  for (const event of [final(2, 3), final(0, 1), final(1, 2)]) store.apply(event);
  assert.deepEqual(texts(store), ["text 0", "text 1", "text 2"]);
});

test("a final that comes twice is shown once", () => {
  const store = new CaptionStore();
  store.apply(final(0, 1));
  assert.equal(store.apply(final(0, 1)), null);
  assert.deepEqual(texts(store), ["text 0"]);
});

test("refined replaces its final in place", () => {
  const store = new CaptionStore();
  store.apply(final(0, 1));
  store.apply(final(1, 2));
  const change = store.apply({ ...final(0, 3, "better"), type: "refined" });
  assert.equal(change.kind, "replace");
  assert.equal(change.index, 0);
  assert.deepEqual(texts(store), ["better", "text 1"]);
});

test("refined before its final is not undone by the final", () => {
  const store = new CaptionStore();
  store.apply({ ...final(0, 5, "better"), type: "refined" });
  assert.equal(store.apply(final(0, 1)), null);
  assert.deepEqual(texts(store), ["better"]);
});

test("a final closes the partial of its utterance", () => {
  const store = new CaptionStore();
  store.apply(partial(0, "hel"));
  store.apply(partial(0, "hello"));
  assert.equal(store.partial.text, "hello");
  store.apply(final(0, 1, "Hello."));
  assert.equal(store.partial, null);
});

test("a late partial of a closed utterance is dropped", () => {
  const store = new CaptionStore();
  store.apply(final(0, 1));
  assert.equal(store.apply(partial(0, "late")), null);
  store.apply(partial(1, "new"));
  assert.equal(store.apply(partial(0, "later")), null);
  assert.equal(store.partial.text, "new");
});

test("a final of an older utterance leaves the open partial", () => {
  const store = new CaptionStore();
  store.apply(partial(1, "new"));
  store.apply(final(0, 1));
  assert.equal(store.partial.text, "new");
});

test("gaps and pauses stand at their time, once", () => {
  const store = new CaptionStore();
  store.apply(final(0, 1));
  store.apply(final(3, 2));
  const gap = { type: "gap", seq: 3, start_ms: 1500, end_ms: 2500 };
  store.apply(gap);
  store.apply(gap);
  assert.deepEqual(texts(store), ["text 0", "gap", "text 3"]);
});

test("a missing number is noticed, and settled by what history says", () => {
  const store = new CaptionStore();
  store.apply(final(0, 1));
  assert.equal(store.isMissingChanges, false);
  store.apply(final(2, 3));
  assert.equal(store.isMissingChanges, true);
  assert.equal(store.knownSeq, 1);
  store.apply(final(1, 2));
  assert.equal(store.isMissingChanges, false);
  assert.equal(store.knownSeq, 3);
  store.head(5);
  assert.equal(store.isMissingChanges, true);
  store.settle(5); // 4 and 5 were superseded, or belong to what is shown already
  assert.equal(store.isMissingChanges, false);
});

test("a live event that overtakes history is kept and counted", () => {
  const store = new CaptionStore();
  store.apply(final(5, 6));
  store.apply(final(6, 7));
  for (let i = 0; i < 5; i += 1) store.apply(final(i, i + 1));
  store.settle(5);
  assert.equal(store.knownSeq, 7);
  assert.equal(store.entries.length, 7);
  assert.equal(store.isMissingChanges, false);
});

test("an endpoint without words clears the partial", () => {
  const store = new CaptionStore();
  store.apply(partial(0, "um"));
  assert.deepEqual(store.apply({ type: "endpoint" }), { kind: "partial" });
  assert.equal(store.partial, null);
});

test("the end of a session takes words away that never became final", () => {
  const store = new CaptionStore();
  store.apply(final(0, 1, "One."));
  store.apply(partial(1, "a"));
  assert.deepEqual(store.end(), { kind: "partial" });
  assert.equal(store.partial, null);
  assert.equal(store.asText(), "One.");
});

test("thousands of finals in any order are kept in order", () => {
  const store = new CaptionStore();
  const order = Array.from({ length: 3000 }, (_, i) => (i * 7) % 3000);
  for (const i of order) store.apply(final(i, i + 1));
  assert.deepEqual(store.entries.map((entry) => entry.utterance), order.map((_, i) => i));
  assert.equal(store.knownSeq, 3000);
});

test("copied text has finals only, with the times that are shown", () => {
  const store = new CaptionStore();
  store.apply(final(0, 1, "One."));
  store.apply({ type: "gap", seq: 2, start_ms: 950, end_ms: 990 });
  store.apply(final(1, 3, "Two."));
  store.apply(partial(2, "thr"));
  assert.equal(store.asText((entry) => `${entry.startMs}`), "0  One.\n1000  Two.");
  assert.equal(store.asText(), "One.\nTwo.");
});
