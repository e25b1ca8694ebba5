/** Audio packets as they travel: 8 bytes of header (big-endian), PCM16 (little-endian). */

const HEADER_BYTES = 8;
const MODULUS = 2 ** 32;

/** `samples` is an Int16Array; numbers wrap at 32 bits. */
export function packPacket(sequence, firstSample, samples) {
  const bytes = new ArrayBuffer(HEADER_BYTES + samples.length * 2);
  const view = new DataView(bytes);
  view.setUint32(0, sequence % MODULUS);
  view.setUint32(4, firstSample % MODULUS);
  samples.forEach((sample, i) => view.setInt16(HEADER_BYTES + i * 2, sample, true));
  return bytes;
}

/** Gathers blocks into packets of an even length; a jump of the index closes the open packet. */
export class Packetiser {
  constructor(lengthSamples) {
    this.lengthSamples = lengthSamples;
    this.firstSample = 0;
    this.held = [];
    this.heldSamples = 0;
  }

  /** Returns the packets that became full: {firstSample, samples}[]. */
  push(firstSample, samples) {
    const packets = [];
    if (this.heldSamples > 0 && firstSample !== this.firstSample + this.heldSamples) {
      packets.push(...this.flush());
    }
    if (this.heldSamples === 0) this.firstSample = firstSample;
    this.held.push(samples);
    this.heldSamples += samples.length;
    while (this.heldSamples >= this.lengthSamples) packets.push(this.#take(this.lengthSamples));
    return packets;
  }

  /** The open packet, however short, or nothing. */
  flush() {
    return this.heldSamples > 0 ? [this.#take(this.heldSamples)] : [];
  }

  advance(samples) {
    this.firstSample += samples;
  }

  #take(length) {
    const all = new Int16Array(this.heldSamples);
    let at = 0;
    for (const part of this.held) {
      all.set(part, at);
      at += part.length;
    }
    const packet = { firstSample: this.firstSample, samples: all.slice(0, length) };
    const rest = all.slice(length);
    this.firstSample += length;
    this.held = rest.length > 0 ? [rest] : [];
    this.heldSamples = rest.length;
    return packet;
  }
}
