/**
 * A choice that a person makes while a capture runs: what is in force, and what they wish until the
 * server has answered. A wish outlives a lost connection. Pure.
 */

export class Wish {
  constructor(inForce) {
    this.inForce = inForce;
    /** Null where nothing is wished. */
    this.wished = null;
    /** Why the last wish was refused, or "". */
    this.problem = "";
  }

  /** Wished even where it is in force: an earlier wish may be on its way. */
  wish(value) {
    this.wished = value;
    this.problem = "";
  }

  becomes(value) {
    this.inForce = value;
    this.problem = "";
    if (value === this.wished) this.wished = null;
  }

  /** The answer to an earlier wish says nothing of the later one. */
  refuse(value, reason) {
    if (value !== this.wished) return;
    this.wished = null;
    this.problem = reason;
  }
}

/** What stands below the choice: why it was refused, or that it waits. */
export function wishSentence({ problem, isWaiting }) {
  if (problem !== "") return `${problem} Captions go on as before.`;
  return isWaiting ? "Changes as soon as the connection is back." : "";
}
