/**
 * Draws a caption store as the few lines of a room's screen. It stands where a page that scrolls has
 * its CaptionsView.
 */

import { languageOf } from "./captions-view.js";
import { breakLines, RoomLines } from "./room-lines.js";

/** So many of the newest finals are enough to fill any screen. */
const FINALS = 8;

export class RoomView {
  constructor(root, store, { language = "" } = {}) {
    this.root = root;
    this.store = store;
    this.language = language;
    this.element = root.querySelector(".room-lines");
    this.lines = new RoomLines();
    this.pen = document.createElement("canvas").getContext("2d");
    this.frame = null;
    new ResizeObserver(() => this.refit()).observe(this.element);
    document.fonts?.ready.then(() => this.refit());
  }

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.#drawNow();
    });
  }

  /** A room shows no times. */
  setTimes() {}

  refit() {
    this.lines.reset();
    this.draw();
  }

  #drawNow() {
    const style = getComputedStyle(this.element);
    this.pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const width = this.element.clientWidth;
    const count = Number(style.getPropertyValue("--room-count"));
    const shown = this.lines.shown(this.#allLines((line) => this.pen.measureText(line).width <= width), count);
    while (this.element.children.length > count) this.element.lastElementChild.remove();
    while (this.element.children.length < count) this.element.append(document.createElement("p"));
    [...this.element.children].forEach((row, place) => drawRow(row, shown[place]));
    this.root.classList.toggle("is-silent", shown.length === 0);
  }

  #allLines(fits) {
    const finals = [];
    for (let at = this.store.entries.length - 1; at >= 0 && finals.length < FINALS; at -= 1) {
      if (this.store.entries[at].kind === "final") finals.unshift(this.store.entries[at]);
    }
    const open = this.store.partial === null ? [] : [this.store.partial];
    return [...finals, ...open].flatMap((entry) =>
      breakLines(entry.text, fits).map((text, number) => ({
        utterance: entry.utterance,
        number,
        text,
        isOpen: entry === this.store.partial,
        isRefined: entry.isRefined ?? false,
        language: entry.language || this.language,
      })),
    );
  }
}

function drawRow(row, line) {
  const words = line?.text ?? "";
  const place = line === undefined ? "" : `${line.utterance} ${line.number}`;
  if (row.textContent !== words) {
    row.classList.toggle("is-refined", place === row.dataset.place && Boolean(line?.isRefined));
    row.textContent = words;
  }
  row.dataset.place = place;
  row.lang = languageOf(words, line?.language ?? "");
  row.classList.toggle("is-open", line?.isOpen ?? false);
}
