/** Keeps the screen, and with it the machine, awake; a browser without the means is left alone. */
export class KeptAwake {
  constructor() {
    this.isWanted = false;
    this.lock = null;
    document.addEventListener("visibilitychange", () => this.#hold());
  }

  start() {
    this.isWanted = true;
    this.#hold();
  }

  stop() {
    this.isWanted = false;
    this.lock?.release();
    this.lock = null;
  }

  /** The browser takes the lock away whenever the page is hidden. */
  async #hold() {
    if (!this.isWanted || document.visibilityState !== "visible") return;
    try {
      this.lock = await navigator.wakeLock?.request("screen");
    } catch {
      // Refused on low battery: captions go on.
    }
  }
}
