/** The choice of the spoken language during a capture: a select, and a line for what failed. */

import { wishSentence } from "./wish.js";

export class LanguageChoice {
  /** `root` is the field; `onChoose` gets the chosen code, "" for detection. */
  constructor(root, onChoose) {
    this.root = root;
    this.select = root.querySelector("select");
    this.note = root.querySelector(".choice-note");
    this.select.addEventListener("change", () => onChoose(this.select.value));
  }

  /** `report` is what the Worker says: {language, wished, problem, isConnected}. */
  show({ language, wished, problem, isConnected }) {
    const shown = wished ?? language;
    if (![...this.select.options].some((option) => option.value === shown)) {
      this.select.append(new Option(shown.toUpperCase(), shown)); // an engine that went had it
    }
    this.root.hidden = this.select.options.length < 2;
    this.select.disabled = false;
    this.select.value = shown;
    this.note.classList.toggle("field-error", problem !== "");
    this.note.textContent = wishSentence({ problem, isWaiting: wished !== null && !isConnected });
    if (problem !== "") this.note.scrollIntoView({ block: "nearest" });
  }
}
