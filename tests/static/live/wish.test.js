import assert from "node:assert/strict";
import { test } from "node:test";
import { Wish, wishSentence } from "../../../static/js/live/wish.js";

test("a wish stands until it is in force or refused", () => {
  const language = new Wish("en");
  language.wish("de");
  assert.deepEqual([language.inForce, language.wished], ["en", "de"]);
  language.becomes("de");
  assert.deepEqual([language.inForce, language.wished], ["de", null]);
  language.wish("fr");
  language.refuse("fr", "It has no French.");
  assert.deepEqual([language.inForce, language.wished, language.problem], ["de", null, "It has no French."]);
  language.wish("en");
  assert.equal(language.problem, "");
});

test("the answer to an earlier wish is not the answer to the later one", () => {
  const language = new Wish("en");
  language.wish("de");
  language.wish("fr");
  language.becomes("de");
  assert.equal(language.wished, "fr");
  language.refuse("de", "No.");
  assert.equal(language.wished, "fr");
});

test("detection, which is empty, can be wished too", () => {
  const language = new Wish("en");
  language.wish("");
  assert.equal(language.wished, "");
  language.becomes("");
  assert.equal(language.wished, null);
});

test("a refusal and a delay are said", () => {
  assert.equal(wishSentence({ problem: "No.", isWaiting: false }), "No. Captions go on as before.");
  assert.match(wishSentence({ problem: "", isWaiting: true }), /as soon as the connection/);
  assert.equal(wishSentence({ problem: "", isWaiting: false }), "");
});
