/**
 * The audio thread's part: mix the sources, resample to 16 kHz from the context's real rate, PCM16.
 *
 * Blocks of 20 ms go straight to the Worker by a port of their own, so that a throttled page delays
 * nothing. Each carries the wall time of its end: only this thread knows when audio was lost.
 */

import { RATE } from "./clock.js";
import { Mixer } from "./mixer.js";
import { Resampler, toPcm16 } from "./resampler.js";

const BLOCK_SAMPLES = RATE / 50;
const LEVELS_PER_SECOND = 30;

class Capture extends AudioWorkletProcessor {
  constructor({ numberOfInputs }) {
    super();
    this.mixer = new Mixer(numberOfInputs, sampleRate / LEVELS_PER_SECOND);
    this.resampler = new Resampler(sampleRate, RATE);
    this.audioPort = null;
    this.block = [];
    this.blockSamples = 0;
    this.isAlive = true;
    this.port.onmessage = ({ data }) => this.obey(data);
  }

  obey({ type, audioPort }) {
    if (type === "send") {
      this.audioPort = audioPort;
      this.block = [];
      this.blockSamples = 0;
    } else if (type === "end") {
      this.hear(this.resampler.flush());
      this.post();
      this.audioPort?.postMessage({ type: "end" });
      this.audioPort = null;
      this.isAlive = false;
    }
  }

  process(inputs) {
    if (!this.isAlive) return false;
    this.hear(this.resampler.process(this.mixer.mix(inputs)));
    const levels = this.mixer.takeLevels();
    if (levels !== null) this.port.postMessage(levels);
    return true;
  }

  hear(samples) {
    if (samples.length === 0 || this.audioPort === null) return;
    this.block.push(samples);
    this.blockSamples += samples.length;
    if (this.blockSamples >= BLOCK_SAMPLES) this.post();
  }

  post() {
    if (this.blockSamples === 0 || this.audioPort === null) return;
    const all = new Float32Array(this.blockSamples);
    let at = 0;
    for (const part of this.block) {
      all.set(part, at);
      at += part.length;
    }
    const samples = toPcm16(all);
    this.audioPort.postMessage({ type: "audio", samples, wallMs: Date.now() }, [samples.buffer]);
    this.block = [];
    this.blockSamples = 0;
  }
}

registerProcessor("capture", Capture);
