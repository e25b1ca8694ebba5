/** The latency mode of a capture, and the modes that there are. Pure: the Worker sends, the page shows. */

import { Wish } from "./wish.js";

export class LatencyModes {
  constructor() {
    /** The choices in words, {mode_ms, words}[]: none where there is no choice. */
    this.modes = [];
    this.choice = new Wish(0);
  }

  get modeMs() {
    return this.choice.inForce;
  }

  get wishedMs() {
    return this.choice.wished;
  }

  get problem() {
    return this.choice.problem;
  }

  wish(modeMs) {
    this.choice.wish(modeMs);
  }

  /** `ready` and `mode`: this mode is in force now. */
  becomes({ modes, mode_ms: modeMs }) {
    this.modes = modes;
    this.choice.becomes(modeMs);
  }

  /** `mode_refused`. */
  refuse({ mode_ms: modeMs, reason }) {
    this.choice.refuse(modeMs, reason);
  }

  /** The message that asks for what is wished, or null. */
  get message() {
    return this.wishedMs === null ? null : { type: "set_mode", mode_ms: this.wishedMs };
  }
}
