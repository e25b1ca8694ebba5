/**
 * The capture clock: the index of the next sample.
 *
 * The index counts samples, stands still while paused, and advances by elapsed time where audio was
 * lost (a reload, a device pulled out, a machine asleep): the server sees the jump as a gap. A lost
 * connection is not a loss: that audio is kept and sent later under the index it was heard at.
 */

export const RATE = 16000;

/** Time missing between two blocks beyond which audio was lost. Below it, timers are imprecise. */
const LOSS_MS = 1000;

export function msOfSamples(samples) {
  return (samples * 1000) / RATE;
}

export class CaptureClock {
  /**
   * `wallMs` is the wall time at `nextSample`, null where no time is to be counted (a new
   * capture, or a pause).
   */
  constructor({ nextSample = 0, wallMs = null, isPaused = false } = {}) {
    this.nextSample = nextSample;
    this.wallMs = wallMs;
    this.isPaused = isPaused;
    this.isInterrupted = wallMs !== null;
    /** Samples that were never heard, since this clock was made. */
    this.lostSamples = 0;
  }

  /**
   * Number a block of `length` samples that ended at `wallMs`. Returns the index of its first
   * sample, or null while paused.
   */
  accept(length, wallMs) {
    if (this.isPaused) return null;
    if (this.wallMs !== null) {
      const missingMs = wallMs - this.wallMs - msOfSamples(length);
      const isLost = missingMs > (this.isInterrupted ? 0 : LOSS_MS);
      if (isLost) this.#lose(Math.round((missingMs * RATE) / 1000));
    }
    this.isInterrupted = false;
    const firstSample = this.nextSample;
    this.nextSample += length;
    this.wallMs = wallMs;
    return firstSample;
  }

  #lose(samples) {
    this.nextSample += samples;
    this.lostSamples += samples;
  }

  /** The next block comes from another source: all time since the last one is missing. */
  interrupt() {
    this.isInterrupted = true;
  }

  pause() {
    this.isPaused = true;
    this.wallMs = null;
  }

  resume() {
    this.isPaused = false;
  }

  /** Move the clock on by `samples`: the server already holds what we would have numbered. */
  advance(samples) {
    this.nextSample += samples;
  }
}
