/** How a reader likes captions: kept in this browser, applied as attributes of the page. */

const KEY = "captions";
const DEFAULTS = { size: "2", spacing: "normal", contrast: "normal", times: "clock" };
const SIZES = ["0", "1", "2", "3", "4", "5"];

export class Preferences extends EventTarget {
  constructor(root) {
    super();
    this.root = root;
    this.values = { ...DEFAULTS, ...read() };
    this.#apply();
    root.addEventListener("click", (event) => this.#choose(event));
  }

  set(name, value) {
    this.values[name] = value;
    try {
      localStorage.setItem(KEY, JSON.stringify(this.values));
    } catch {
      // A private window: the choice lasts as long as the page.
    }
    this.#apply();
    this.dispatchEvent(new CustomEvent("change", { detail: { name, value } }));
  }

  /** Larger (1) or smaller (-1) letters. */
  resize(step) {
    const at = Math.max(0, Math.min(SIZES.length - 1, SIZES.indexOf(this.values.size) + step));
    this.set("size", SIZES[at]);
  }

  #choose(event) {
    const button = event.target.closest("[data-preference]");
    if (button !== null) this.set(button.dataset.preference, button.dataset.value);
    const resizer = event.target.closest("[data-resize]");
    if (resizer !== null) this.resize(Number(resizer.dataset.resize));
  }

  #apply() {
    for (const [name, value] of Object.entries(this.values)) this.root.dataset[name] = value;
    for (const button of this.root.querySelectorAll("[data-preference]")) {
      const isChosen = this.values[button.dataset.preference] === button.dataset.value;
      button.setAttribute("aria-pressed", String(isChosen));
    }
    for (const resizer of this.root.querySelectorAll("[data-resize]")) {
      const end = resizer.dataset.resize === "1" ? SIZES.at(-1) : SIZES[0];
      resizer.disabled = this.values.size === end;
    }
  }
}

function read() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    const known = Object.entries(stored).filter(([name]) => name in DEFAULTS);
    return Object.fromEntries(known);
  } catch {
    return {};
  }
}
