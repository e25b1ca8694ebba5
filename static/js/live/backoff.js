/** Waiting times between attempts to connect: they double, up to five seconds, with jitter. */

const FIRST_MS = 400;
const LONGEST_MS = 5000;

export class Backoff {
  constructor(random = Math.random) {
    this.random = random;
    this.reset();
  }

  reset() {
    this.nextMs = FIRST_MS;
  }

  /** Milliseconds to wait before the next attempt: 75 to 125 % of the step. */
  next() {
    const waitMs = this.nextMs * (0.75 + this.random() / 2);
    this.nextMs = Math.min(LONGEST_MS, this.nextMs * 2);
    return waitMs;
  }
}
