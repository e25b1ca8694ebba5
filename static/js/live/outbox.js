/**
 * What a capture has heard and the server has not yet confirmed to be on disk.
 *
 * Items stand in the order they happened: audio packets and the marks `pause`, `resume`, `stop`. A
 * cursor tells sent from unsent; after a lost connection it goes back to the first kept item, and
 * the server drops what it already holds. Pure: sockets and storage are the worker's.
 */

import { CaptureClock, RATE, msOfSamples } from "./clock.js";
import { Packetiser } from "./packets.js";

/** Longest absence that audio is kept for: as long as the server keeps a session waiting. */
const KEEP_MS = 10 * 60 * 1000;

/** Packet length until the server has named its own. */
const FIRST_PACKET_MS = 200;

function samplesOfMs(ms) {
  return Math.round((ms * RATE) / 1000);
}

export class Outbox {
  /** `state` and `items` come from the journal after a reload. */
  constructor({ state = {}, items = [], keepMs = KEEP_MS } = {}) {
    this.clock = new CaptureClock(state);
    this.sequence = state.sequence ?? 0;
    this.ordinal = state.ordinal ?? 0;
    this.isStopped = state.isStopped ?? false;
    this.items = items;
    this.keepSamples = samplesOfMs(keepMs);
    this.cursor = 0;
    this.acknowledgedSample = state.acknowledgedSample ?? 0;
    this.droppedSamples = 0;
    this.packetiser = new Packetiser(samplesOfMs(FIRST_PACKET_MS));
  }

  /** What the journal must hold, beside the items, to go on after a reload. */
  get state() {
    return {
      nextSample: this.clock.nextSample,
      wallMs: this.clock.wallMs,
      isPaused: this.clock.isPaused,
      isStopped: this.isStopped,
      sequence: this.sequence,
      ordinal: this.ordinal,
      acknowledgedSample: this.acknowledgedSample,
    };
  }

  /** Number a block (Int16Array) that ended at `wallMs`. Returns the items that it completed. */
  accept(samples, wallMs) {
    if (this.isStopped) return [];
    const firstSample = this.clock.accept(samples.length, wallMs);
    if (firstSample === null) return [];
    return this.#addPackets(this.packetiser.push(firstSample, samples));
  }

  /** Close the open packet, however short: another tab goes on from here. */
  flush() {
    return this.#addPackets(this.packetiser.flush());
  }

  /** Another device, or the same one opened again: audio in between is lost. */
  interrupt() {
    this.clock.interrupt();
  }

  pause() {
    if (this.clock.isPaused || this.isStopped) return [];
    const added = this.#addPackets(this.packetiser.flush());
    this.clock.pause();
    return [...added, this.#add({ kind: "pause", firstSample: this.clock.nextSample })];
  }

  resume() {
    if (!this.clock.isPaused || this.isStopped) return [];
    this.clock.resume();
    return [this.#add({ kind: "resume", firstSample: this.clock.nextSample })];
  }

  stop() {
    if (this.isStopped) return [];
    const added = this.#addPackets(this.packetiser.flush());
    this.isStopped = true;
    return [...added, this.#add({ kind: "stop", firstSample: this.clock.nextSample })];
  }

  /** From now on packets are `packetMs` long; what is held already goes into the first of them. */
  usePackets(packetMs) {
    if (packetMs > 0) this.packetiser.lengthSamples = samplesOfMs(packetMs);
  }

  /** The server is ready for packets of `packetMs` and holds everything below `sample`. */
  ready(packetMs, sample) {
    this.usePackets(packetMs);
    this.acknowledge(sample);
    this.cursor = 0;
  }

  /**
   * A capture that begins in a session with audio of its own was numbered from the wrong start:
   * put everything that is kept behind `sample`.
   */
  startBehind(sample) {
    const first = this.items[0]?.firstSample ?? this.packetiser.firstSample;
    const shift = sample - first;
    if (shift <= 0) return;
    for (const item of this.items) item.firstSample += shift;
    this.packetiser.advance(shift);
    this.clock.advance(shift);
  }

  /** Every sample below `sample` is on disk. Returns the ordinal below which items are gone. */
  acknowledge(sample) {
    this.acknowledgedSample = Math.max(this.acknowledgedSample, sample);
    let gone = 0;
    while (gone < this.items.length && this.#isSettled(this.items[gone])) gone += 1;
    this.#drop(gone);
    return this.items[0]?.ordinal ?? this.ordinal;
  }

  /** The next item to send, or null; it counts as sent. */
  next() {
    return this.items[this.cursor] === undefined ? null : this.items[this.cursor++];
  }

  peek() {
    return this.items[this.cursor] ?? null;
  }

  /** Audio that only this browser has for certain. */
  get keptMs() {
    return msOfSamples(
      this.items.reduce((sum, item) => sum + (item.samples?.length ?? 0), 0) +
        this.packetiser.heldSamples,
    );
  }

  get unsentMs() {
    let samples = this.packetiser.heldSamples;
    for (let i = this.cursor; i < this.items.length; i += 1) {
      samples += this.items[i].samples?.length ?? 0;
    }
    return msOfSamples(samples);
  }

  /** Audio that never came from its source: the captions mark it as a gap. */
  get lostMs() {
    return msOfSamples(this.clock.lostSamples);
  }

  get droppedMs() {
    return msOfSamples(this.droppedSamples);
  }

  /** A mark is settled once audio behind it is on disk: only then was it surely heard. */
  #isSettled(item) {
    if (item.kind === "audio") {
      return item.firstSample + item.samples.length <= this.acknowledgedSample;
    }
    return item.kind !== "stop" && item.firstSample < this.acknowledgedSample;
  }

  #addPackets(packets) {
    return packets.map((packet) => {
      const item = this.#add({ kind: "audio", sequence: this.sequence, ...packet });
      this.sequence += 1;
      return item;
    });
  }

  #add(fields) {
    const item = { ordinal: this.ordinal, ...fields };
    this.ordinal += 1;
    this.items.push(item);
    let kept = this.items.reduce((sum, each) => sum + (each.samples?.length ?? 0), 0);
    while (kept > this.keepSamples && this.items[0] !== item) {
      const lost = this.items[0].samples?.length ?? 0;
      this.droppedSamples += lost;
      kept -= lost;
      this.#drop(1);
    }
    return item;
  }

  #drop(count) {
    this.items.splice(0, count);
    this.cursor = Math.max(0, this.cursor - count);
  }
}
