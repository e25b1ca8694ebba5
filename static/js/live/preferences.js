/** How a reader likes captions: kept in this browser, applied as attributes of the page. */

const COLUMN = {
  key: "captions",
  defaults: { size: "2", spacing: "normal", contrast: "normal", times: "clock" },
  sizes: ["0", "1", "2", "3", "4", "5"],
};
/** A room's screen has its own: what suits a laptop does not suit it. */
export const ROOM = {
  key: "room",
  defaults: { size: "2", ground: "dark", contrast: "normal" },
  sizes: ["0", "1", "2", "3", "4"],
};

export class Preferences extends EventTarget {
  constructor(root, { key, defaults, sizes } = COLUMN) {
    super();
    this.root = root;
    this.key = key;
    this.sizes = sizes;
    this.values = { ...defaults, ...read(key, defaults) };
    this.#apply();
    root.addEventListener("click", (event) => this.#choose(event));
  }

  set(name, value) {
    this.values[name] = value;
    try {
      localStorage.setItem(this.key, JSON.stringify(this.values));
    } catch {
      // A private window: the choice lasts as long as the page.
    }
    this.#apply();
    this.dispatchEvent(new CustomEvent("change", { detail: { name, value } }));
  }

  /** Larger (1) or smaller (-1) letters. */
  resize(step) {
    const at = this.sizes.indexOf(this.values.size) + step;
    this.set("size", this.sizes[Math.max(0, Math.min(this.sizes.length - 1, at))]);
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
      const end = resizer.dataset.resize === "1" ? this.sizes.at(-1) : this.sizes[0];
      resizer.disabled = this.values.size === end;
    }
  }
}

function read(key, defaults) {
  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? "{}");
    const known = Object.entries(stored).filter(([name]) => name in defaults);
    return Object.fromEntries(known);
  } catch {
    return {};
  }
}
