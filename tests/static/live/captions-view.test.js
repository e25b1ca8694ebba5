import assert from "node:assert/strict";
import { test } from "node:test";
import { languageOf } from "../../../static/js/live/captions-view.js";

test("a text is in the language that was heard, as far as its script allows", () => {
  assert.equal(languageOf("Bonjour à tous.", "fr"), "fr");
  assert.equal(languageOf("大家早上好。", "en"), "zh");
  assert.equal(languageOf("大家早上好。", "yue"), "yue");
  assert.equal(languageOf("おはよう。", "zh"), "ja");
  assert.equal(languageOf("안녕하세요.", "en"), "ko");
});

test("Latin letters alone are not read out as Chinese, Japanese or Korean", () => {
  for (const language of ["zh", "yue", "ja", "ko"]) assert.equal(languageOf("Good morning.", language), "en");
  assert.equal(languageOf("2026。", "zh"), "zh");
  assert.equal(languageOf("用 Python 写。", "zh"), "zh");
});
