/** One tab of a browser captures a session; another takes over by an explicit act alone. */

const TIMEOUT_MS = 3000;

export class TabLock {
  /** `onYield` stores what the other tab goes on from; the lock is free once it has resolved. */
  constructor(session, onYield) {
    this.name = `capture ${session}`;
    this.onYield = onYield;
    this.release = null;
  }

  /** Resolves to whether it is held. A tab that just closed, or was asked to yield, takes a moment. */
  async take({ isTakingOver }) {
    const tabs = new BroadcastChannel(this.name);
    if (isTakingOver) tabs.postMessage("yield");
    let isHeld = await this.#request({ signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!isHeld && isTakingOver) isHeld = await this.#request({ steal: true }); // it hangs
    if (isHeld) tabs.onmessage = () => this.#yield();
    else tabs.close();
    return isHeld;
  }

  #request(options) {
    return new Promise((resolve) => {
      navigator.locks
        .request(this.name, options, () => {
          resolve(true);
          return new Promise((release) => (this.release = release)); // else until this tab ends
        })
        .catch(() => {
          resolve(false);
          this.#yield(); // where it was held, it is stolen
        });
    });
  }

  async #yield() {
    const { release } = this;
    if (release === null) return;
    this.release = null;
    await this.onYield();
    release();
  }
}
