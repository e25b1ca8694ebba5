import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CaptureWords,
  columnNotice,
  refusedSentence,
  savedSentence,
} from "../../../static/js/live/capture-words.js";

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

test("a refusal of what was live says that the page tries again", () => {
  const reason = "The speech engine is too busy to keep another session on time.";
  assert.equal(
    page().strip({ phase: "reconnecting", keptMs: 14_000, reason }),
    `${reason} This page tries again by itself. Nothing is lost: 14 s kept here.`,
  );
});

test("a start that is refused for now says what happens next", () => {
  const next = "Nothing was recorded, nor what you said meanwhile. Press Try again in a minute.";
  const reason = "The speech engine is too busy to keep another session on time.";
  assert.equal(refusedSentence({ code: "overloaded", reason }), `${reason} ${next}`);
  const behind = "The server is behind. Nothing was lost; it goes on in a moment.";
  assert.equal(refusedSentence({ code: "try_later", reason: behind }), `The server is too busy to start now. ${next}`);
  const full = "All live places are taken. Try again when a session has ended.";
  assert.equal(refusedSentence({ code: "no_free_slot", reason: full }), full);
});

test("captions that stand still on the speaker's page say so, once", () => {
  const live = { phase: "live" };
  const loggedOut = { phase: "refused", needsLogin: true, reason: "Log in first." };
  assert.equal(columnNotice({ phase: "open", reason: "" }, live), "");
  assert.match(columnNotice(loggedOut, live), /Log in again in another tab, and they go on here/);
  assert.match(columnNotice({ phase: "lost", reason: "" }, live), /stand still/);
  assert.equal(columnNotice({ phase: "refused", needsLogin: false, reason: "Not yours." }, live), "Not yours.");
  assert.equal(columnNotice(loggedOut, { phase: "reconnecting" }), "");
});

test("a capture in which nobody spoke has no captions", () => {
  assert.equal(savedSentence(22_000, true), "0:22 of captions.");
  assert.equal(savedSentence(22_000, false), "0:22 recorded. No words were heard in it, so there are no captions.");
  assert.equal(savedSentence(22_000, null), "0:22 recorded.");
});
