/**
 * Draws a caption store: finals and marks in a column, the open partial below, nothing jumps.
 *
 * The partial stands exactly where its final will: when it closes, the same words stay in place.
 * While a reader follows, the column moves up by whole lines and never down. A reader who scrolled
 * up is left alone, and told how many lines are new. Refined text comes in the place of its final:
 * a row that would be lower keeps its height until it has left the screen, and one that is higher
 * moves what stands above it, or below for a reader who scrolled up.
 */

import { formatClock, formatLength, formatTimeOfDay, wallTimeOf } from "../times.js";

/** Where the newest line stands at the lowest, as a share of the column's height. */
const LIVE_LINE = 0.8;
const NEAR_PX = 24;
/** Newest rows that are always laid out; older ones only when they come near the screen. */
const RENDERED_ROWS = 50;
const INTENT_MS = 400;
const SCROLL_KEYS = new Set(["PageUp", "PageDown", "ArrowUp", "ArrowDown", "Home", "End", " "]);

/**
 * The language of a text as its script allows it: for letter forms, and for who reads it out.
 *
 * `fallback` is the language that was heard, or chosen. Where it is one that Latin letters do not
 * write, words in Latin letters alone are taken for English.
 */
export function languageOf(text, fallback) {
  if (/[\u3040-\u30ff]/.test(text)) return "ja";
  if (/[\uac00-\ud7af]/.test(text)) return "ko";
  if (/[\u4e00-\u9fff]/.test(text)) return /^(zh|yue|ja)/.test(fallback) ? fallback : "zh";
  if (/^(zh|yue|ja|ko)/.test(fallback) && /\p{Script=Latin}/u.test(text)) return "en";
  return fallback;
}

export class CaptionsView {
  /**
   * `root` holds `.captions-scroll` with `.captions-list` and `.captions-partial`, and
   * `.captions-back`. `store` is the CaptionStore that is drawn. `language` is the session's, for
   * lines that name none; `timeZone` the reader's, "" for the browser's.
   */
  constructor(root, store, { language = "", timeZone = "" } = {}) {
    this.store = store;
    this.language = language;
    this.timeZone = timeZone;
    this.scroll = root.querySelector(".captions-scroll");
    this.list = root.querySelector(".captions-list");
    this.partial = root.querySelector(".captions-partial");
    this.back = root.querySelector(".captions-back");
    this.pairs = [];
    this.timesShown = "clock";
    this.isFollowing = true;
    this.newLines = 0;
    this.intentUntilMs = 0;
    this.listHeight = 0;
    this.width = 0;
    this.held = new Set();
    this.#watch();
  }

  draw(change) {
    if (change.kind === "insert") this.#insert(change);
    else if (change.kind === "replace") this.#replace(change);
    this.#schedule();
  }

  /** `pairs` of [position ms, wall ms]; `shown` is "clock", "elapsed" or "none". */
  setTimes(pairs, shown) {
    this.pairs = pairs;
    this.timesShown = shown;
    this.store.entries.forEach((_, index) => this.#drawTime(index));
    this.#schedule();
  }

  /** The words in the margin of an entry. */
  timeOf({ startMs }) {
    if (this.timesShown === "none") return "";
    if (this.timesShown === "elapsed") return formatClock(startMs);
    const wallMs = wallTimeOf(startMs, this.pairs);
    return wallMs === null ? "" : formatTimeOfDay(wallMs, this.timeZone);
  }

  /** Letters have changed their size: who follows goes on following. */
  refit() {
    this.#letGo(this.held);
    if (this.isFollowing) this.backToLive();
  }

  backToLive() {
    this.isFollowing = true;
    this.scroll.scrollTop = this.#liveTop();
    this.#drawBack();
  }

  /** Once a frame: history comes in hundreds, and every look at a place costs a layout. */
  #schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.#drawPartial();
      this.#follow();
      this.#letGoOfPassed();
      this.#drawBack();
    });
  }

  #insert({ entry, index }) {
    const item = entry.kind === "final" ? this.#makeFinal(entry) : this.#makeMark(entry);
    this.list.insertBefore(item, this.list.children[index] ?? null);
    this.#drawTime(index);
    if (index + 1 < this.store.entries.length) this.#drawTime(index + 1);
    this.list.children[this.list.children.length - RENDERED_ROWS]?.classList.add("is-old");
    if (!this.isFollowing && entry.kind === "final") this.newLines += 1;
  }

  #replace({ entry, index }) {
    const item = this.list.children[index];
    const text = item.querySelector(".caption-text");
    if (text === null || text.textContent === entry.text) return;
    const before = item.getBoundingClientRect();
    text.lang = languageOf(entry.text, entry.language || this.language);
    text.textContent = entry.text;
    const after = item.getBoundingClientRect();
    const isPassed = before.bottom <= this.scroll.getBoundingClientRect().top;
    if (after.height < before.height && !isPassed) this.#hold(item, before.height);
    // Measured, since a browser may have held on to what is shown by itself.
    else if (isPassed || this.isFollowing) this.scroll.scrollTop += after.bottom - before.bottom;
    text.classList.remove("is-refined");
    void text.offsetWidth; // starts the fade again
    text.classList.add("is-refined");
  }

  #hold(item, height) {
    item.style.minHeight = `${height}px`;
    this.held.add(item);
  }

  #letGo(items) {
    for (const item of [...items]) {
      item.style.minHeight = "";
      this.held.delete(item);
    }
  }

  /** Rows that nobody sees any more take the height that they need. */
  #letGoOfPassed() {
    const top = this.scroll.getBoundingClientRect().top;
    const isPassed = (item) => item.getBoundingClientRect().bottom <= top;
    const passed = this.held.size > 0 ? [...this.held].filter(isPassed) : [];
    if (passed.length === 0) return;
    const before = this.list.offsetHeight;
    this.#letGo(passed);
    this.scroll.scrollTop += this.list.offsetHeight - before;
  }

  #makeFinal(entry) {
    const item = document.createElement("li");
    item.className = "caption";
    item.append(this.#makeTime(), this.#makeText(entry.text, entry.language));
    return item;
  }

  #makeMark(entry) {
    const item = document.createElement("li");
    item.className = `caption caption-mark caption-${entry.kind}`;
    const words = document.createElement("p");
    words.className = "caption-words";
    words.textContent =
      entry.kind === "gap"
        ? `${formatLength(entry.endMs - entry.startMs)} of sound was not heard`
        : "Paused";
    item.append(this.#makeTime(), words);
    return item;
  }

  #makeTime() {
    const time = document.createElement("span");
    time.className = "caption-time";
    return time;
  }

  #makeText(text, language) {
    const words = document.createElement("p");
    words.className = "caption-text";
    words.lang = languageOf(text, language || this.language);
    words.textContent = text;
    return words;
  }

  /** A time that repeats the one above it is left out: the margin stays quiet. */
  #drawTime(index) {
    const entry = this.store.entries[index];
    const time = this.list.children[index].querySelector(".caption-time");
    time.textContent = this.#timeBelow(entry, index);
    time.title = this.timesShown === "clock" ? formatClock(entry.startMs) : "";
  }

  #timeBelow(entry, index) {
    const words = this.timeOf(entry);
    return index > 0 && this.timeOf(this.store.entries[index - 1]) === words ? "" : words;
  }

  #drawPartial() {
    const partial = this.store.partial;
    const words = partial?.text ?? "";
    const text = this.partial.querySelector(".caption-text");
    this.partial.classList.toggle("is-empty", words === "");
    if (text.textContent !== words) {
      text.textContent = words;
      text.lang = languageOf(words, this.language);
    }
    const shown = partial === null ? "" : this.#timeBelow(partial, this.store.entries.length);
    const time = this.partial.querySelector(".caption-time");
    if (time.textContent !== shown) time.textContent = shown;
    this.#holdMarks();
  }

  /** A mark that comes while the words before it are still open shows when they have closed. */
  #holdMarks() {
    const openMs = this.store.partial?.startMs ?? Infinity;
    for (let index = this.store.entries.length - 1; index >= 0; index -= 1) {
      const entry = this.store.entries[index];
      if (entry.kind === "final") break;
      this.list.children[index].hidden = entry.startMs > openMs;
    }
  }

  #watch() {
    const intend = () => (this.intentUntilMs = performance.now() + INTENT_MS);
    for (const name of ["wheel", "touchmove", "pointerdown"]) {
      this.scroll.addEventListener(name, intend, { passive: true });
    }
    this.scroll.addEventListener("keydown", (event) => {
      if (SCROLL_KEYS.has(event.key)) intend();
    });
    this.scroll.addEventListener("scroll", () => this.#scrolled(intend), { passive: true });
    this.back.addEventListener("click", () => this.backToLive());
    const sizes = new ResizeObserver(() => this.#resized());
    sizes.observe(this.list);
    sizes.observe(this.scroll);
  }

  /** Only a person's own scrolling ends following: the browser also moves, as heights settle. */
  #scrolled(intend) {
    const isNear = this.scroll.scrollTop >= this.#liveTop() - NEAR_PX;
    if (performance.now() < this.intentUntilMs) {
      intend(); // a flick goes on by itself
      this.isFollowing = isNear;
    } else if (isNear) {
      this.isFollowing = true;
    }
    this.#drawBack();
  }

  #liveTop() {
    const newest = this.store.partial === null ? this.list : this.partial;
    const bottom = newest.offsetTop + newest.offsetHeight;
    return Math.max(0, Math.round(bottom - this.scroll.clientHeight * LIVE_LINE));
  }

  #follow() {
    if (!this.isFollowing) return;
    const top = this.#liveTop();
    if (top > this.scroll.scrollTop) this.scroll.scrollTop = top;
  }

  /** Heights that were estimates become real, letters load late, a telephone is turned. */
  #resized() {
    if (this.width !== this.scroll.clientWidth) this.#letGo(this.held);
    this.width = this.scroll.clientWidth;
    const hasShrunk = this.list.offsetHeight < this.listHeight;
    this.listHeight = this.list.offsetHeight;
    if (hasShrunk && this.isFollowing) this.scroll.scrollTop = this.#liveTop();
    else this.#follow();
  }

  #drawBack() {
    if (this.isFollowing) this.newLines = 0;
    this.back.hidden = this.isFollowing;
    this.back.querySelector(".captions-back-count").textContent =
      this.newLines === 0 ? "" : this.newLines === 1 ? "1 new line" : `${this.newLines} new lines`;
  }
}
