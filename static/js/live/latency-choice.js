/** The choice between speed and accuracy during a capture: a select, and a line for what failed. */

import { wishSentence } from "./wish.js";

export class LatencyChoice {
  /** `root` is the field; `onChoose` gets the chosen mode in milliseconds. */
  constructor(root, onChoose) {
    this.root = root;
    this.select = root.querySelector("select");
    this.note = root.querySelector(".choice-note");
    this.select.addEventListener("change", () => onChoose(Number(this.select.value)));
  }

  /** `report` is what the Worker says: {modes, modeMs, wishedMs, problem, isConnected}. */
  show({ modes, modeMs, wishedMs, problem, isConnected }) {
    this.root.hidden = modes.length === 0;
    this.select.disabled = false;
    this.#fill(modes);
    this.select.value = String(wishedMs ?? modeMs);
    this.note.classList.toggle("field-error", problem !== "");
    this.note.textContent = wishSentence({ problem, isWaiting: wishedMs !== null && !isConnected });
    if (problem !== "") this.note.scrollIntoView({ block: "nearest" });
  }

  /** An open list must not be replaced under the person's hand. */
  #fill(modes) {
    const options = modes.map((mode) => new Option(mode.words, String(mode.mode_ms)));
    const key = (all) => [...all].map((option) => `${option.value} ${option.text}`).join("\n");
    if (key(this.select.options) !== key(options)) this.select.replaceChildren(...options);
  }
}
