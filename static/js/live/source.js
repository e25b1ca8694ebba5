/** One thing that is heard, a microphone or what is shared: its tracks, and what is wrong with it. */

export class Source {
  /** `input` is its place in the graph; `silentAfterMs`: zeros for so long mean a fault. */
  constructor(input, silentAfterMs) {
    this.input = input;
    this.silentAfterMs = silentAfterMs;
    this.stream = null;
  }

  get isOpen() {
    return this.stream !== null && !this.hasEnded;
  }

  get track() {
    return this.stream?.getAudioTracks()[0] ?? null;
  }

  get hasEnded() {
    return this.track?.readyState === "ended";
  }

  /** Hear `stream` from now on; the one before is let go. `onChange`: look at `trouble` again. */
  use(stream, nowMs, onChange) {
    this.letGo();
    this.stream = stream;
    this.soundMs = nowMs;
    for (const event of ["ended", "mute", "unmute"]) this.track.addEventListener(event, onChange);
  }

  hear(level, nowMs) {
    if (level.peak > 0) this.soundMs = nowMs;
  }

  /** "", "ended", "muted" or "silent". */
  trouble(nowMs) {
    if (this.stream === null) return "";
    if (this.hasEnded) return "ended";
    if (this.track.muted) return "muted";
    return nowMs - this.soundMs > this.silentAfterMs ? "silent" : "";
  }

  letGo() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
  }
}
