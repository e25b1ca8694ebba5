/** A level meter that shows speech clearly: fast up, slow down, on a scale of decibels. */

const FLOOR_DB = -60;
const TOP_DB = -6;
const FALL_PER_SECOND = 1.2;
const HOLD_MS = 1200;

/** RMS of full scale 1 to a place 0..1 on the meter. Speech stands between 0.35 and 0.85. */
export function placeOfLevel(rms) {
  if (rms <= 0) return 0;
  const decibels = 20 * Math.log10(rms);
  return Math.max(0, Math.min(1, (decibels - FLOOR_DB) / (TOP_DB - FLOOR_DB)));
}

export class Meter {
  /** `element` has children `.meter-bar` and `.meter-peak`. */
  constructor(element) {
    this.element = element;
    this.bar = element.querySelector(".meter-bar");
    this.peak = element.querySelector(".meter-peak");
    this.shown = 0;
    this.highest = 0;
    this.highestMs = 0;
    this.drawnMs = performance.now();
  }

  show({ rms, peak }) {
    const now = performance.now();
    const fallen = this.shown - ((now - this.drawnMs) / 1000) * FALL_PER_SECOND;
    this.drawnMs = now;
    this.shown = Math.max(placeOfLevel(rms), fallen, 0);
    if (this.shown >= this.highest || now - this.highestMs > HOLD_MS) {
      this.highest = this.shown;
      this.highestMs = now;
    }
    this.element.dataset.loudness = peak >= 0.99 ? "clipping" : this.shown > 0.3 ? "speech" : "quiet";
    this.bar.style.transform = `scaleX(${this.shown.toFixed(3)})`;
    this.peak.style.left = `${(this.highest * 100).toFixed(1)}%`;
    this.element.setAttribute("aria-valuenow", String(Math.round(this.shown * 100)));
  }

  clear() {
    this.show({ rms: 0, peak: 0 });
    this.shown = 0;
    this.highest = 0;
    this.bar.style.transform = "scaleX(0)";
    this.peak.style.left = "0";
    this.element.dataset.loudness = "quiet";
  }
}
