/**
 * What a capture hears: a microphone, shared sound, or both in one channel.
 *
 * Events: `level` {microphone, shared} as {rms, peak}, thirty times a second; `trouble` {sentence},
 * empty when it is over; `shareended` {choice} when the browser's bar or the tab ended a share, with
 * the choice that was in force; `renewed` when there is a new graph, which sends to nobody yet.
 */

import { AudioGraph } from "./audio-graph.js";
import { openMicrophone } from "./microphone.js";
import { openSharedAudio } from "./shared-audio.js";
import { Source } from "./source.js";
import {
  MICROPHONE,
  STALLED,
  hearsMicrophone,
  hearsShared,
  microphoneRefusal,
  sharingRefusal,
  troubleSentence,
} from "./source-words.js";

const CHECK_MS = 250;
/** With CHECK_MS, a microphone without any sound is named within three seconds. */
const SILENT_MICROPHONE_MS = 2500;
/** Between two sentences of a meeting nothing at all may come. */
const SILENT_SHARE_MS = 15_000;
const STALLED_AFTER_MS = 2000;
/** The audio thread empties its filter before its devices go. */
const LAST_BLOCK_MS = 200;

export class Sources extends EventTarget {
  constructor(workletAddress) {
    super();
    this.workletAddress = workletAddress;
    this.choice = MICROPHONE;
    this.microphone = new Source(0, SILENT_MICROPHONE_MS);
    this.shared = new Source(1, SILENT_SHARE_MS);
    this.graph = null;
    this.heardMs = 0;
    this.sentence = "";
    this.settling = Promise.resolve();
  }

  /** Everything that was chosen is open. */
  get isOpen() {
    return (
      (!hearsMicrophone(this.choice) || this.microphone.isOpen) &&
      (!hearsShared(this.choice) || this.shared.isOpen)
    );
  }

  /** The browser holds audio back until somebody touches the page. */
  get isHeldBack() {
    return this.graph?.isHeldBack ?? false;
  }

  /** Only after a touch is everything heard again. */
  get needsTouch() {
    return this.isHeldBack || !this.isOpen || this.#isStalled(performance.now());
  }

  get deviceId() {
    return this.microphone.track?.getSettings().deviceId ?? "";
  }

  /**
   * Hear `choice` from now on; what it needs is opened, a share after a click only. Returns "", or
   * the sentence that says why all stays as it was.
   */
  choose(choice, deviceId) {
    return this.#next(() => this.#choose(choice, deviceId));
  }

  /** Another microphone ("": the browser's choice). Returns "" or a sentence, as `choose` does. */
  useMicrophone(deviceId) {
    return this.#next(() => this.#openMicrophone(deviceId));
  }

  /** Another tab or screen. Returns "" or a sentence, as `choose` does. */
  shareAgain() {
    return this.#next(() => this.#openShared());
  }

  /** Somebody touched the page: audio may flow. A context that died is made anew. */
  async wake() {
    if (this.graph === null) return;
    if (!this.#isStalled(performance.now())) {
      await this.graph.wake();
      return;
    }
    this.graph.close();
    this.graph = null;
    await this.#openGraph();
    for (const source of [this.microphone, this.shared]) {
      if (source.isOpen) this.graph.attach(source.input, source.stream);
    }
  }

  /** From now on every block goes to `audioPort`; null: nobody, the levels are shown all the same. */
  sendTo(audioPort) {
    this.graph?.sendTo(audioPort);
  }

  /** Send the last block, then let go of everything. */
  end() {
    this.graph?.end();
    setTimeout(() => this.close(), LAST_BLOCK_MS);
  }

  close() {
    clearInterval(this.checkTimer);
    this.microphone.letGo();
    this.shared.letGo();
    this.graph?.close();
    this.graph = null;
    this.#say("");
  }

  #next(act) {
    const result = this.settling.then(act);
    this.settling = result.catch(() => {});
    return result;
  }

  /** Sharing first: the click that it needs grows old. */
  async #choose(choice, deviceId) {
    if (hearsShared(choice) && !this.shared.isOpen) {
      const sentence = await this.#openShared();
      if (sentence !== "") return sentence;
    }
    if (hearsMicrophone(choice) && !this.microphone.isOpen) {
      const sentence = await this.#openMicrophone(deviceId);
      if (sentence !== "") {
        if (!hearsShared(this.choice)) this.#letGo(this.shared);
        return sentence;
      }
    }
    this.choice = choice;
    if (!hearsShared(choice)) this.#letGo(this.shared);
    if (!hearsMicrophone(choice)) this.#letGo(this.microphone);
    this.#check();
    return "";
  }

  #openMicrophone(deviceId) {
    return this.#open(this.microphone, () => openMicrophone(deviceId), microphoneRefusal);
  }

  #openShared() {
    return this.#open(this.shared, openSharedAudio, sharingRefusal);
  }

  /** What was heard before goes on until the new one stands. */
  async #open(source, open, refusal) {
    try {
      const stream = await open();
      await this.#openGraph();
      this.graph.attach(source.input, stream);
      source.use(stream, performance.now(), () => this.#check());
    } catch (error) {
      return refusal(error);
    }
    await this.graph.wake();
    this.#check();
    return "";
  }

  async #openGraph() {
    if (this.graph !== null) return;
    this.graph = await AudioGraph.open(this.workletAddress, 2, (levels) => this.#hear(levels));
    this.heardMs = performance.now();
    clearInterval(this.checkTimer);
    this.checkTimer = setInterval(() => this.#check(), CHECK_MS);
    this.dispatchEvent(new Event("renewed"));
  }

  #letGo(source) {
    this.graph?.detach(source.input);
    source.letGo();
  }

  #hear([microphone, shared]) {
    this.heardMs = performance.now();
    this.microphone.hear(microphone, this.heardMs);
    this.shared.hear(shared, this.heardMs);
    this.dispatchEvent(new CustomEvent("level", { detail: { microphone, shared } }));
  }

  #isStalled(nowMs) {
    return this.graph !== null && nowMs - this.heardMs > STALLED_AFTER_MS;
  }

  #check() {
    const now = performance.now();
    if (this.graph === null) return;
    if (this.shared.hasEnded) {
      const { choice } = this;
      this.#letGo(this.shared);
      if (this.microphone.isOpen) this.choice = MICROPHONE;
      this.dispatchEvent(new CustomEvent("shareended", { detail: { choice } }));
    }
    if (this.#isStalled(now)) {
      this.#say(STALLED);
      return;
    }
    this.#say(
      troubleSentence({ microphone: this.microphone.trouble(now), shared: this.shared.trouble(now) }),
    );
  }

  #say(sentence) {
    if (sentence === this.sentence) return;
    this.sentence = sentence;
    this.dispatchEvent(new CustomEvent("trouble", { detail: { sentence } }));
  }
}
