/**
 * What a screen reader says of live captions: finals alone, each once, in their order.
 *
 * Partials would be read again with every word, and history would be read for minutes, so neither
 * comes here.
 */

const KEPT = 5;

export class HeardCaptions {
  /** `element` is a live region; `null` where the page has none (the speaker's own). */
  constructor(element) {
    this.element = element;
  }

  say(text, language = "") {
    if (this.element === null) return;
    const words = document.createElement("p");
    words.lang = language;
    words.textContent = text;
    this.element.append(words);
    while (this.element.children.length > KEPT) this.element.firstElementChild.remove();
  }
}
