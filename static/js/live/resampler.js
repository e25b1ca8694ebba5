/**
 * Resampling by a polyphase windowed-sinc filter, continuous across blocks.
 *
 * Output sample n stands exactly at input time n * from / to: positions are whole numbers, so an
 * hour drifts by nothing, and the filter's delay is taken out (the last half filter of audio waits
 * inside until more comes, or until `flush`). Stop band below -80 dB (Kaiser window, beta 8).
 */

const ZERO_CROSSINGS = 32;
const ROLLOFF = 0.93; // the pass band ends at 93 % of the lower Nyquist frequency
const KAISER_BETA = 8;

function besselI0(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-12; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a, b) {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

export class Resampler {
  /** Rates in Hz, whole numbers. */
  constructor(fromRate, toRate) {
    const divisor = greatestCommonDivisor(fromRate, toRate);
    this.up = toRate / divisor;
    this.down = fromRate / divisor;
    const stretch = Math.max(1, fromRate / toRate);
    this.half = Math.ceil(ZERO_CROSSINGS * stretch);
    this.taps = 2 * this.half;
    this.bank = this.#makeBank((ROLLOFF / stretch), this.half);
    // Silence stands before the first sample, so that the first output sample is the first input's.
    this.held = new Float32Array(this.half - 1);
    this.phase = 0;
  }

  /** One row of taps for each of the `up` positions between two input samples; each sums to 1. */
  #makeBank(cutoff, half) {
    const bank = new Float32Array(this.up * this.taps);
    const edge = besselI0(KAISER_BETA);
    for (let phase = 0; phase < this.up; phase += 1) {
      const row = bank.subarray(phase * this.taps, (phase + 1) * this.taps);
      let sum = 0;
      for (let tap = 0; tap < this.taps; tap += 1) {
        const distance = tap - (half - 1) - phase / this.up;
        const angle = Math.PI * distance * cutoff;
        const sinc = distance === 0 ? 1 : Math.sin(angle) / angle;
        const along = Math.min(1, Math.abs(distance / half));
        row[tap] = (sinc * besselI0(KAISER_BETA * Math.sqrt(1 - along * along))) / edge;
        sum += row[tap];
      }
      for (let tap = 0; tap < this.taps; tap += 1) row[tap] /= sum;
    }
    return bank;
  }

  /** Float32Array in, Float32Array out; the lengths of blocks do not matter. */
  process(input) {
    const samples = new Float32Array(this.held.length + input.length);
    samples.set(this.held);
    samples.set(input, this.held.length);
    const output = [];
    let start = 0;
    let phase = this.phase;
    while (start + this.taps <= samples.length) {
      const row = phase * this.taps;
      let sum = 0;
      for (let tap = 0; tap < this.taps; tap += 1) sum += this.bank[row + tap] * samples[start + tap];
      output.push(sum);
      phase += this.down;
      start += Math.floor(phase / this.up);
      phase %= this.up;
    }
    this.phase = phase;
    this.held = samples.slice(start);
    return Float32Array.from(output);
  }

  /** The last samples, heard with silence after them. The resampler is then at its end. */
  flush() {
    return this.process(new Float32Array(this.half));
  }
}

/** Mean of the channels of one block: Float32Array[] of equal length. */
export function downmix(channels) {
  if (channels.length === 1) return channels[0];
  const mono = new Float32Array(channels[0].length);
  for (const channel of channels) {
    for (let i = 0; i < mono.length; i += 1) mono[i] += channel[i] / channels.length;
  }
  return mono;
}

/** -1..1 to signed 16 bit, clipped. */
export function toPcm16(samples) {
  const pcm = new Int16Array(samples.length);
  for (let i = 0; i < samples.length; i += 1) {
    const value = Math.max(-1, Math.min(1, samples[i]));
    pcm[i] = Math.round(value < 0 ? value * 32768 : value * 32767);
  }
  return pcm;
}
