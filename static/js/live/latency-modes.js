/**
 * The latency mode of a capture: what is in force, and what the person wishes until the server has
 * answered. A wish outlives a lost connection. Pure: the Worker sends it, the page shows it.
 */

export class LatencyModes {
  constructor() {
    /** The choices in words, {mode_ms, words}[]: none where there is no choice. */
    this.modes = [];
    this.modeMs = 0;
    this.wishedMs = null;
    this.problem = "";
  }

  /** Wished even where it is in force: an earlier wish may be on its way. */
  wish(modeMs) {
    this.wishedMs = modeMs;
    this.problem = "";
  }

  /** `ready` and `mode`: this mode is in force now. */
  becomes({ modes, mode_ms: modeMs }) {
    this.modes = modes;
    this.modeMs = modeMs;
    this.problem = "";
    if (modeMs === this.wishedMs) this.wishedMs = null;
  }

  /** `mode_refused`. The answer to an earlier wish says nothing of the later one. */
  refuse({ mode_ms: modeMs, reason }) {
    if (modeMs !== this.wishedMs) return;
    this.wishedMs = null;
    this.problem = reason;
  }

  /** The message that asks for what is wished, or null. */
  get message() {
    return this.wishedMs === null ? null : { type: "set_mode", mode_ms: this.wishedMs };
  }
}
