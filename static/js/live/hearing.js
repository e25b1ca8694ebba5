/**
 * What a capture is to hear, what it hears, and what the person is told of the difference.
 *
 * Events: `trouble` {sentence, act}, where `act` ("share", "wake" or "") is what `mend` would do;
 * `want` when nothing is left to be heard and `heard` when that is over; `road` {audioPort} when
 * audio comes from a new port.
 */

import { microphones } from "./microphone.js";
import { SourceChoice } from "./source-choice.js";
import {
  BOTH,
  MICROPHONE,
  SHARED,
  hearsMicrophone,
  hearsShared,
  sharingEnded,
  sharingLostByReload,
  sharingObstacle,
} from "./source-words.js";
import { Sources } from "./sources.js";

const DEVICE_KEY = "microphone";
/** In this tab alone: what was heard before a reload. */
const SOURCE_KEY = "source";

export class Hearing extends EventTarget {
  /** `root` is the page's part that holds the fields, see SourceChoice. */
  constructor(root) {
    super();
    this.sources = new Sources(root.dataset.worklet);
    this.page = new SourceChoice(root, sharingObstacle(navigator.mediaDevices), {
      choose: (choice) => this.#choose(choice),
      microphone: (deviceId) => this.#useMicrophone(deviceId),
      share: () => this.#share(),
    });
    /** What the person wants to be heard; it is in force once it is open. */
    this.wanted = MICROPHONE;
    /** Why less than that is heard, until they act. */
    this.notice = "";
    this.isWanting = false;
    this.isCapturing = false;
    this.#listen();
    this.page.show(this.wanted);
  }

  get isHeldBack() {
    return this.sources.isHeldBack;
  }

  /** Hear what is wanted. Returns "" or the sentence that says why not. */
  async open() {
    if (this.sources.choice === this.wanted && this.sources.isOpen) return "";
    const deviceId = localStorage.getItem(DEVICE_KEY) ?? "";
    const sentence = await this.sources.choose(this.wanted, deviceId);
    if (sentence !== "") return sentence;
    sessionStorage.setItem(SOURCE_KEY, this.wanted);
    this.#stopWanting();
    this.#showDevices();
    return "";
  }

  /** As `open`, before the start: nothing is shared without an act. */
  async openMicrophone() {
    return hearsShared(this.wanted) ? "" : this.open();
  }

  /** After a reload. No page may share again by itself. */
  async resume() {
    const before = sessionStorage.getItem(SOURCE_KEY) ?? MICROPHONE;
    let sentence = "";
    if (hearsMicrophone(before)) sentence = await this.open();
    if (hearsShared(before)) {
      this.wanted = before;
      this.notice = sharingLostByReload(before);
      sessionStorage.setItem(SOURCE_KEY, before);
    }
    this.page.show(this.wanted);
    if (before === SHARED) this.#want();
    if (sentence === "" && this.isHeldBack) sentence = "The browser waits for you before it listens again.";
    this.#tell(sentence);
  }

  /** A port from which all audio comes from now on; what it holds waits for its reader. */
  takeRoad() {
    const { port1, port2 } = new MessageChannel();
    this.sources.sendTo(port1);
    return port2;
  }

  /** Hear on, for the meters alone. */
  leaveRoad() {
    this.sources.sendTo(null);
  }

  wake() {
    return this.sources.wake();
  }

  /** Do what the button beside the trouble offers; follows a click. */
  async mend(act) {
    if (act === "share") {
      await this.#share();
      return;
    }
    const sentence = this.sources.isOpen ? "" : await this.open();
    await this.sources.wake();
    this.#tell(sentence);
  }

  /** The person pauses or goes on by themselves: nothing is to be done for them. */
  forgetWant() {
    this.isWanting = false;
  }

  /** Send the last block, then close. */
  end() {
    this.sources.end();
  }

  close() {
    this.isCapturing = this.isWanting = false;
    this.notice = "";
    this.sources.close();
    this.page.clearLevels();
  }

  #listen() {
    this.sources.addEventListener("level", ({ detail }) => this.page.showLevels(detail));
    this.sources.addEventListener("trouble", () => this.#tell());
    this.sources.addEventListener("renewed", () => {
      if (this.isCapturing) this.#dispatch("road", { audioPort: this.takeRoad() });
    });
    this.sources.addEventListener("shareended", ({ detail }) => this.#shareEnded(detail.choice));
    navigator.mediaDevices?.addEventListener("devicechange", () => this.#devicesChanged());
  }

  /** Before the start a share is asked for by a button of its own, and by the start itself. */
  async #choose(choice) {
    this.wanted = choice;
    this.page.show(choice);
    if (!this.isCapturing && hearsShared(choice)) {
      this.#tell();
      return;
    }
    const sentence = await this.open();
    if (sentence !== "" && this.isCapturing) this.page.show(this.sources.choice);
    this.#tell(sentence);
  }

  async #useMicrophone(deviceId) {
    const sentence = await this.sources.useMicrophone(deviceId);
    if (sentence === "" && deviceId !== "") localStorage.setItem(DEVICE_KEY, deviceId);
    this.#showDevices();
    this.#tell(sentence);
  }

  async #share() {
    if (!hearsShared(this.wanted)) this.wanted = BOTH;
    const isHeard = hearsShared(this.sources.choice) && this.sources.isOpen;
    const sentence = isHeard ? await this.sources.shareAgain() : await this.open();
    if (sentence === "") this.page.show(this.wanted);
    this.#tell(sentence);
  }

  #shareEnded(choice) {
    this.notice = sharingEnded(choice);
    if (choice === SHARED) this.#want();
    this.page.show(this.isCapturing ? this.sources.choice : this.wanted);
    this.#tell();
  }

  #devicesChanged() {
    if (this.sources.microphone.hasEnded) this.#useMicrophone("");
    else if (this.sources.microphone.isOpen) this.#showDevices();
  }

  async #showDevices() {
    const chosen = this.sources.deviceId || localStorage.getItem(DEVICE_KEY) || "";
    this.page.showDevices(await microphones(), chosen);
  }

  #want() {
    if (!this.isCapturing) return;
    this.isWanting = true;
    this.#dispatch("want");
  }

  #stopWanting() {
    this.notice = "";
    if (this.isWanting) this.#dispatch("heard");
    this.isWanting = false;
  }

  /** `refusal` is why the last act changed nothing, or "". */
  #tell(refusal = "") {
    const said = refusal || this.notice;
    const sentence = [said, this.sources.sentence].filter(Boolean).join(" ");
    let act = "";
    if (said !== "" && hearsShared(this.wanted)) act = "share";
    else if (sentence !== "" && this.sources.needsTouch) act = "wake";
    this.#dispatch("trouble", { sentence, act });
  }

  #dispatch(type, detail = null) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
