/**
 * The Web Audio graph of a capture: each source is an input of the worklet, which mixes them.
 *
 * Sources come and go while it runs: nothing of the others is lost meanwhile.
 */

/** A context that a browser holds back until somebody touches the page never resumes by itself. */
const RESUME_TIMEOUT_MS = 300;

export class AudioGraph {
  /** `onLevels` gets {rms, peak} of each input thirty times a second. */
  static async open(workletAddress, inputs, onLevels) {
    // Nothing is played. With the short blocks of "interactive" a busy machine loses audio between
    // the device and this graph; these cost about 13 ms more (Chromium).
    const context = new AudioContext({ latencyHint: "playback" });
    await context.audioWorklet.addModule(workletAddress);
    return new AudioGraph(context, inputs, onLevels);
  }

  constructor(context, inputs, onLevels) {
    this.context = context;
    this.attached = new Map();
    this.node = new AudioWorkletNode(context, "capture", {
      numberOfInputs: inputs,
      numberOfOutputs: 1,
    });
    this.node.port.onmessage = ({ data }) => onLevels(data);
    this.node.connect(context.destination); // silent; a node without a listener may not run
  }

  /** The browser holds audio back until somebody touches the page. */
  get isHeldBack() {
    return this.context.state === "suspended";
  }

  /** Somebody touched the page, or may have: audio may flow. */
  async wake() {
    await Promise.race([
      this.context.resume(),
      new Promise((done) => setTimeout(done, RESUME_TIMEOUT_MS)),
    ]);
  }

  /** What was attached to `input` before gives way once `stream` is heard. */
  attach(input, stream) {
    const source = this.context.createMediaStreamSource(stream);
    source.connect(this.node, 0, input);
    this.detach(input);
    this.attached.set(input, source);
  }

  detach(input) {
    this.attached.get(input)?.disconnect();
    this.attached.delete(input);
  }

  /** From now on every block goes to `audioPort`; null: to nobody. */
  sendTo(audioPort) {
    this.node.port.postMessage({ type: "send", audioPort }, audioPort ? [audioPort] : []);
  }

  /** Send what is still inside the filter, then the end. */
  end() {
    this.node.port.postMessage({ type: "end" });
  }

  close() {
    this.context.close();
  }
}
