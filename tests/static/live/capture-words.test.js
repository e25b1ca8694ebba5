import assert from "node:assert/strict";
import { test } from "node:test";
import { CaptureWords } from "../../../static/js/live/capture-words.js";

class Element {
  dataset = {};
  textContent = "";
  hidden = true;
  disabled = false;
  classList = { toggle() {} };
  parts = new Map();

  querySelector(selector) {
    if (!this.parts.has(selector)) this.parts.set(selector, new Element());
    return this.parts.get(selector);
  }

  setAttribute() {}
}

const LIVE = {
  phase: "live",
  keptMs: 0,
  unsentMs: 0,
  droppedMs: 0,
  lostMs: 0,
  sample: 16_000,
  behindMs: 0,
  isPaused: false,
  needsLogin: false,
  reason: "",
};

function page() {
  const root = new Element();
  const words = new CaptureWords(root);
  return {
    words,
    root,
    state: () => root.querySelector(".capture-state-words").textContent,
    strip: (status) => {
      words.show({ ...LIVE, ...status });
      const strip = root.querySelector(".capture-link");
      return strip.hidden ? "" : strip.querySelector("p").textContent;
    },
  };
}

test("nothing is said while all is well", () => {
  const { strip, state } = page();
  assert.equal(strip({}), "");
  assert.equal(state(), "Live");
});

test("a lost connection says what is kept, and then that nothing was lost", () => {
  const { strip, state } = page();
  assert.match(strip({ phase: "reconnecting", keptMs: 14_000 }), /Nothing is lost: 14 s kept here/);
  assert.equal(state(), "Reconnecting");
  assert.match(strip({ phase: "catching_up", unsentMs: 9000 }), /9 s to go/);
  assert.equal(strip({}), "Caught up. Nothing was lost.");
});

test("after a gap nobody claims that nothing was lost", () => {
  const { strip } = page();
  strip({ phase: "catching_up", unsentMs: 9000, lostMs: 3000 });
  assert.equal(strip({ lostMs: 3000 }), "3 s could not be heard. The captions show the gap.");
});

test("what was too much to keep is told", () => {
  const { strip } = page();
  strip({ phase: "reconnecting", keptMs: 600_000 });
  assert.match(strip({ droppedMs: 60_000 }), /1 min were too much to keep/);
});

test("captions that are behind say by how much", () => {
  assert.match(page().strip({ behindMs: 7000 }), /7 s behind the voice/);
});

test("a pause is a state of its own", () => {
  const { strip, state } = page();
  strip({ isPaused: true });
  assert.equal(state(), "Paused");
});

test("a trouble offers what mends it, or nothing", () => {
  const { words, root } = page();
  const strip = root.querySelector(".capture-trouble");
  const button = strip.querySelector("button");
  words.showTrouble("Sharing was stopped.", "share");
  assert.deepEqual([strip.hidden, button.hidden, button.textContent], [false, false, "Share again"]);
  words.showTrouble("The microphone is muted.");
  assert.deepEqual([strip.hidden, button.hidden], [false, true]);
  words.showTrouble("");
  assert.equal(strip.hidden, true);
});
