/**
 * The audio thread's part: downmix, resample to 16 kHz from the context's real rate, PCM16.
 *
 * Blocks of 20 ms go straight to the Worker by a port of their own, so that a throttled page delays
 * nothing. Each carries the wall time of its end: only this thread knows when audio was lost.
 */

import { RATE } from "./clock.js";
import { Resampler, downmix, toPcm16 } from "./resampler.js";

const BLOCK_SAMPLES = RATE / 50;
const LEVEL_SAMPLES = RATE / 30;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, RATE);
    this.audioPort = null;
    this.block = [];
    this.blockSamples = 0;
    this.isAlive = true;
    this.clearLevel();
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

  process([channels]) {
    if (!this.isAlive) return false;
    const mono = channels.length > 0 ? downmix(channels) : new Float32Array(128);
    this.hear(this.resampler.process(mono));
    return true;
  }

  hear(samples) {
    if (samples.length === 0) return;
    this.measure(samples);
    if (this.audioPort === null) return;
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

  measure(samples) {
    for (const sample of samples) {
      this.squares += sample * sample;
      this.peak = Math.max(this.peak, Math.abs(sample));
    }
    this.measured += samples.length;
    if (this.measured < LEVEL_SAMPLES) return;
    this.port.postMessage({ rms: Math.sqrt(this.squares / this.measured), peak: this.peak });
    this.clearLevel();
  }

  clearLevel() {
    this.squares = 0;
    this.peak = 0;
    this.measured = 0;
  }
}

registerProcessor("capture", Capture);
