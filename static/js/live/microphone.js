/**
 * The microphone on the page's side: opening it, its level, and what is wrong with it, in words.
 *
 * Events: `level` {rms, peak} thirty times a second; `trouble` {sentence}, empty when it is over.
 */

const SILENT_AFTER_MS = 2500;
const STALLED_AFTER_MS = 2000;
const CHECK_MS = 500;
/** A context that a browser holds back until somebody touches the page never resumes by itself. */
const RESUME_TIMEOUT_MS = 300;

const REFUSALS = {
  NotAllowedError:
    "The browser does not let this page hear the microphone. Allow it with the sign beside the address, then try again.",
  NotFoundError: "No microphone was found. Plug one in, then try again.",
  NotReadableError:
    "The microphone cannot be opened. Another program may be using it: close that, then try again.",
  OverconstrainedError: "The chosen microphone is not there any more. Choose another.",
};

const TROUBLES = {
  unplugged: "The microphone was unplugged. Plug it in again, or choose another.",
  muted: "The microphone is muted by the computer. Nothing is heard until it is switched on.",
  silent: "Nothing at all comes from the microphone. It may be switched off, or be the wrong one.",
  stalled: "The browser has stopped listening to the microphone.",
};

/** Why this page can have no microphone at all, or "". */
export function microphoneObstacle() {
  if (navigator.mediaDevices?.getUserMedia === undefined) {
    return window.isSecureContext
      ? "This browser gives pages no microphone. Use a current Chrome, Edge, Firefox or Safari."
      : "This page came by http, and browsers give a microphone only to pages that came by https. Open the same address with https:// to start captions.";
  }
  if (window.AudioWorkletNode === undefined) {
    return "This browser is too old to hear the microphone well. Use a current Chrome, Edge, Firefox or Safari.";
  }
  return "";
}

/** A sentence for an error of `open`. */
export function refusalSentence(error) {
  return REFUSALS[error.name] ?? "The microphone could not be opened. Check it, then try again.";
}

export class Microphone extends EventTarget {
  constructor(workletAddress) {
    super();
    this.workletAddress = workletAddress;
    this.context = null;
    this.stream = null;
    this.node = null;
    this.trouble = "";
  }

  get isOpen() {
    return this.stream !== null;
  }

  get isUnplugged() {
    return this.stream?.getAudioTracks()[0]?.readyState === "ended";
  }

  get deviceId() {
    return this.stream?.getAudioTracks()[0]?.getSettings().deviceId ?? "";
  }

  /** The browser holds audio back until somebody touches the page. */
  get isHeldBack() {
    return this.context?.state === "suspended";
  }

  /** {id, name}[]; names are known only after the microphone was allowed once. */
  async devices() {
    const all = await navigator.mediaDevices.enumerateDevices();
    return all
      .filter((device) => device.kind === "audioinput" && device.deviceId !== "")
      .map((device, i) => ({ id: device.deviceId, name: device.label || `Microphone ${i + 1}` }));
  }

  /**
   * Open `deviceId` ("" is the browser's choice); the one before is let go when the new one stands.
   * One after the other, whoever asks. Raises what getUserMedia raises.
   */
  open(deviceId = "") {
    this.opening = this.settled().then(() => this.#open(deviceId));
    return this.opening;
  }

  /** Resolves when nothing is being opened, whatever came of it. */
  async settled() {
    await this.opening?.catch(() => {});
  }

  async #open(deviceId) {
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: {
        ...(deviceId ? { deviceId: { exact: deviceId } } : {}),
        channelCount: { ideal: 1 },
        // The room is to be heard as it is: loudspeakers of a call too, and quiet voices.
        echoCancellation: false,
        noiseSuppression: false,
        autoGainControl: true,
      },
    });
    const context = new AudioContext({ latencyHint: "interactive" });
    await context.audioWorklet.addModule(this.workletAddress);
    const node = new AudioWorkletNode(context, "capture", { numberOfOutputs: 1 });
    node.port.onmessage = ({ data }) => this.#hear(data);
    context.createMediaStreamSource(stream).connect(node);
    node.connect(context.destination); // silent; a node without a listener may not run
    this.#release();
    Object.assign(this, { stream, context, node });
    this.#watch(stream.getAudioTracks()[0]);
    await Promise.race([context.resume(), new Promise((done) => setTimeout(done, RESUME_TIMEOUT_MS))]);
  }

  /** Somebody touched the page: audio may flow. */
  async wake() {
    await this.context?.resume();
  }

  /** From now on every block goes to `audioPort`. */
  sendTo(audioPort) {
    this.node.port.postMessage({ type: "send", audioPort }, [audioPort]);
  }

  /** Send what is still inside the filter, then the end; then let go of the device. */
  end() {
    this.node?.port.postMessage({ type: "end" });
    setTimeout(() => this.close(), 200);
  }

  /** Hear on, for the meter alone. */
  stopSending() {
    this.node?.port.postMessage({ type: "send", audioPort: null });
  }

  close() {
    this.#release();
    this.#setTrouble("");
  }

  #release() {
    clearInterval(this.checkTimer);
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.context?.close();
    this.stream = null;
    this.context = null;
    this.node = null;
  }

  #watch(track) {
    this.heardMs = performance.now();
    this.soundMs = performance.now();
    track.onended = () => this.#check();
    track.onmute = () => this.#check();
    track.onunmute = () => this.#check();
    this.checkTimer = setInterval(() => this.#check(), CHECK_MS);
  }

  #hear(level) {
    this.heardMs = performance.now();
    if (level.peak > 0) this.soundMs = this.heardMs;
    this.dispatchEvent(new CustomEvent("level", { detail: level }));
  }

  #check() {
    const now = performance.now();
    const track = this.stream?.getAudioTracks()[0];
    if (track === undefined) return;
    if (track.readyState === "ended") this.#setTrouble(TROUBLES.unplugged);
    else if (track.muted) this.#setTrouble(TROUBLES.muted);
    else if (now - this.heardMs > STALLED_AFTER_MS) this.#setTrouble(TROUBLES.stalled);
    else if (now - this.soundMs > SILENT_AFTER_MS) this.#setTrouble(TROUBLES.silent);
    else this.#setTrouble("");
  }

  #setTrouble(sentence) {
    if (sentence === this.trouble) return;
    this.trouble = sentence;
    this.dispatchEvent(new CustomEvent("trouble", { detail: { sentence } }));
  }
}
