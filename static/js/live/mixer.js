/** Several sources become one channel, and the level of each is measured. Pure: the audio thread's. */

import { downmix } from "./resampler.js";

/** Frames that the browser gives an audio thread at a time. */
const QUANTUM = 128;

export class Mixer {
  /** `levelFrames` is how much audio one reading of the levels covers. */
  constructor(sources, levelFrames) {
    this.levelFrames = levelFrames;
    this.levels = Array.from({ length: sources }, () => ({ squares: 0, peak: 0 }));
    this.measured = 0;
  }

  /**
   * `inputs[source][channel]` are Float32Arrays of one length; a source that is not there has no
   * channels. Returns the sum of the sources, each downmixed, or silence.
   */
  mix(inputs) {
    const sounding = inputs.map((channels) => (channels.length > 0 ? downmix(channels) : null));
    const frames = sounding.find((mono) => mono !== null)?.length ?? QUANTUM;
    const mixed = new Float32Array(frames);
    sounding.forEach((mono, source) => {
      if (mono === null) return;
      const level = this.levels[source];
      for (let i = 0; i < frames; i += 1) {
        mixed[i] += mono[i];
        level.squares += mono[i] * mono[i];
        level.peak = Math.max(level.peak, Math.abs(mono[i]));
      }
    });
    this.measured += frames;
    return mixed;
  }

  /** {rms, peak} of each source once enough was heard for a reading, else null. */
  takeLevels() {
    if (this.measured < this.levelFrames) return null;
    const readings = this.levels.map(({ squares, peak }) => ({
      rms: Math.sqrt(squares / this.measured),
      peak,
    }));
    for (const level of this.levels) level.squares = level.peak = 0;
    this.measured = 0;
    return readings;
  }
}
