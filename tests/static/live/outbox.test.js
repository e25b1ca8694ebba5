import assert from "node:assert/strict";
import { test } from "node:test";
import { CaptureClock, RATE } from "../../../static/js/live/clock.js";
import { Outbox } from "../../../static/js/live/outbox.js";
import { Packetiser, packPacket } from "../../../static/js/live/packets.js";

const BLOCK = RATE / 50; // 20 ms
const T0 = 1_700_000_000_000;

/** Feeds `seconds` of audio whose samples count up, as a microphone would. */
class Microphone {
  constructor(outbox, wallMs = T0) {
    this.outbox = outbox;
    this.wallMs = wallMs;
    this.value = 0;
  }

  speak(seconds) {
    for (let i = 0; i < Math.round(seconds * 50); i += 1) {
      this.wallMs += 20;
      const block = Int16Array.from({ length: BLOCK }, () => (this.value += 1) % 30000);
      this.outbox.accept(block, this.wallMs);
    }
  }

  wait(seconds) {
    this.wallMs += seconds * 1000;
  }
}

function sendAll(outbox) {
  const sent = [];
  for (let item = outbox.next(); item !== null; item = outbox.next()) sent.push(item);
  return sent;
}

function spans(items) {
  return items
    .filter((item) => item.kind === "audio")
    .map((item) => [item.firstSample, item.firstSample + item.samples.length]);
}

function assertContiguous(items, from) {
  let at = from;
  for (const [start, end] of spans(items)) {
    assert.equal(start, at);
    at = end;
  }
  return at;
}

test("a packet is a big-endian header and little-endian samples", () => {
  const bytes = new Uint8Array(packPacket(1, 0x01020304, Int16Array.of(1, -2)));
  assert.deepEqual([...bytes], [0, 0, 0, 1, 1, 2, 3, 4, 1, 0, 254, 255]);
});

test("sample indices wrap at 32 bits", () => {
  const view = new DataView(packPacket(2 ** 32 + 5, 2 ** 32 + 7, Int16Array.of(0)));
  assert.equal(view.getUint32(0), 5);
  assert.equal(view.getUint32(4), 7);
});

test("a jump of the index closes the open packet", () => {
  const packetiser = new Packetiser(100);
  assert.deepEqual(packetiser.push(0, new Int16Array(60)), []);
  const packets = packetiser.push(1000, new Int16Array(130));
  assert.deepEqual(packets.map((p) => [p.firstSample, p.samples.length]), [[0, 60], [1000, 100]]);
  assert.deepEqual(packetiser.flush().map((p) => [p.firstSample, p.samples.length]), [[1100, 30]]);
});

test("what is spoken before the server is ready is kept from the first sample", () => {
  const outbox = new Outbox();
  new Microphone(outbox).speak(3);
  outbox.ready(160, 0);
  assert.equal(assertContiguous(sendAll(outbox), 0), 3 * RATE);
});

test("packets take the length that the server named", () => {
  const outbox = new Outbox();
  const microphone = new Microphone(outbox);
  outbox.ready(320, 0);
  microphone.speak(0.64);
  assert.deepEqual(spans(sendAll(outbox)), [[0, 5120], [5120, 10240]]);
});

test("packets of another length go on at the next sample with the next number", () => {
  const outbox = new Outbox();
  const microphone = new Microphone(outbox);
  outbox.ready(200, 0);
  const lengths = [80, 160, 200, 320, 80, 200];
  for (const packetMs of lengths) {
    microphone.speak(1.1); // leaves a part of a packet
    outbox.usePackets(packetMs);
  }
  outbox.stop();
  const sent = sendAll(outbox).filter((item) => item.kind === "audio");
  assert.equal(assertContiguous(sent, 0), microphone.value);
  assert.deepEqual(sent.map((item) => item.sequence), sent.map((_, i) => i));
  const said = sent.flatMap((item) => [...item.samples]);
  assert.deepEqual(said, said.map((_, i) => (i + 1) % 30000));
  assert.deepEqual(sent.slice(4, 7).map((item) => item.samples.length), [3200, 1280, 1280]);
});

test("after a lost connection sending starts at the first sample not on disk", () => {
  const outbox = new Outbox();
  const microphone = new Microphone(outbox);
  outbox.ready(200, 0);
  microphone.speak(10);
  sendAll(outbox);
  outbox.acknowledge(4 * RATE);
  microphone.speak(20); // disconnected
  assert.equal(outbox.keptMs, 26_000);
  outbox.ready(200, 4 * RATE);
  assert.equal(assertContiguous(sendAll(outbox), 4 * RATE), 30 * RATE);
});

test("sequence numbers rise by one and a repeated packet keeps its number", () => {
  const outbox = new Outbox();
  new Microphone(outbox).speak(2);
  const first = sendAll(outbox).map((item) => item.sequence);
  assert.deepEqual(first, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  outbox.ready(200, 0);
  assert.deepEqual(sendAll(outbox).map((item) => item.sequence), first);
});

test("a packet that is only partly on disk is kept whole", () => {
  const outbox = new Outbox();
  new Microphone(outbox).speak(1);
  outbox.acknowledge(3200 + 1);
  assert.equal(outbox.items[0].firstSample, 3200);
});

test("a pause stops the index", () => {
  const outbox = new Outbox();
  const microphone = new Microphone(outbox);
  microphone.speak(1);
  outbox.pause();
  microphone.speak(60);
  outbox.resume();
  microphone.speak(1);
  outbox.stop();
  const items = sendAll(outbox);
  assert.equal(assertContiguous(items, 0), 2 * RATE);
  assert.deepEqual(
    items.filter((item) => item.kind !== "audio").map((item) => [item.kind, item.firstSample]),
    [["pause", RATE], ["resume", RATE], ["stop", 2 * RATE]],
  );
});

test("a pause in the middle of a packet sends the audio before it", () => {
  const outbox = new Outbox();
  new Microphone(outbox).speak(0.3);
  outbox.pause();
  assert.deepEqual(sendAll(outbox).map((item) => item.kind), ["audio", "audio", "pause"]);
});

test("a mark is kept until audio behind it is on disk", () => {
  const outbox = new Outbox();
  const microphone = new Microphone(outbox);
  microphone.speak(1);
  outbox.pause();
  outbox.acknowledge(RATE);
  assert.deepEqual(outbox.items.map((item) => item.kind), ["pause"]);
  outbox.resume();
  microphone.speak(1);
  outbox.acknowledge(2 * RATE);
  assert.deepEqual(outbox.items, []);
});

test("a reload advances the index by the time that passed", () => {
  const before = new Outbox();
  const microphone = new Microphone(before);
  microphone.speak(5);
  sendAll(before);
  before.acknowledge(3 * RATE);
  const after = new Outbox({ state: before.state, items: [...before.items] });
  microphone.outbox = after;
  microphone.wait(4);
  microphone.speak(1);
  after.ready(200, 3 * RATE);
  const sent = spans(sendAll(after));
  assert.deepEqual(sent[0], [3 * RATE, 3 * RATE + 3200]);
  assert.deepEqual(sent.at(-1), [10 * RATE - 3200, 10 * RATE]);
  assert.deepEqual(sent[10], [9 * RATE, 9 * RATE + 3200]);
});

test("a reload while paused adds no time", () => {
  const before = new Outbox();
  const microphone = new Microphone(before);
  microphone.speak(1);
  before.pause();
  const after = new Outbox({ state: before.state, items: [...before.items] });
  microphone.outbox = after;
  microphone.wait(30);
  after.resume();
  microphone.speak(1);
  assert.equal(after.clock.nextSample, 2 * RATE);
});

test("a machine that slept leaves a gap of its length", () => {
  const clock = new CaptureClock();
  clock.accept(BLOCK, T0 + 20);
  assert.equal(clock.accept(BLOCK, T0 + 20_040), BLOCK + 20 * RATE);
});

test("a change of the device counts all time between, however short", () => {
  const outbox = new Outbox();
  const microphone = new Microphone(outbox);
  microphone.speak(1);
  outbox.interrupt();
  microphone.wait(0.3);
  microphone.speak(1);
  assert.equal(outbox.clock.nextSample, 2.3 * RATE);
});

test("a late timer is no gap", () => {
  const clock = new CaptureClock();
  clock.accept(BLOCK, T0 + 20);
  assert.equal(clock.accept(BLOCK, T0 + 900), BLOCK);
});

test("a wall clock that goes back is no gap", () => {
  const clock = new CaptureClock();
  clock.accept(BLOCK, T0);
  assert.equal(clock.accept(BLOCK, T0 - 3_600_000), BLOCK);
});

test("a second capture of a session is numbered behind what the server holds", () => {
  const outbox = new Outbox();
  const microphone = new Microphone(outbox);
  microphone.speak(1.1);
  outbox.startBehind(50 * RATE);
  outbox.ready(200, 50 * RATE);
  microphone.speak(0.9);
  outbox.stop();
  assert.equal(assertContiguous(sendAll(outbox), 50 * RATE), 52 * RATE);
});

test("two minutes without a connection lose nothing; what exceeds the limit is counted", () => {
  const kept = new Outbox();
  new Microphone(kept).speak(120);
  assert.equal(kept.droppedMs, 0);
  assert.equal(kept.keptMs, 120_000);
  const small = new Outbox({ keepMs: 1000 });
  new Microphone(small).speak(2);
  assert.equal(small.droppedMs, 1000);
  assert.equal(small.items[0].firstSample, RATE);
});

test("after stop nothing more is accepted", () => {
  const outbox = new Outbox();
  const microphone = new Microphone(outbox);
  microphone.speak(1);
  outbox.stop();
  microphone.speak(1);
  outbox.pause();
  outbox.stop();
  assert.deepEqual(outbox.items.at(-1), { ordinal: 5, kind: "stop", firstSample: RATE });
  outbox.acknowledge(RATE);
  assert.deepEqual(outbox.items.map((item) => item.kind), ["stop"]);
});

test("another tab goes on with what was kept, the packet that was being filled included", () => {
  const first = new Outbox();
  const microphone = new Microphone(first);
  microphone.speak(1.1);
  first.flush();
  const second = new Outbox({ state: first.state, items: first.items });
  microphone.outbox = second;
  microphone.speak(0.9);
  second.stop();
  second.ready(200, 0);
  assert.equal(assertContiguous(sendAll(second), 0), 2 * RATE);
  assert.equal(second.lostMs, 0);
});

test("what was never heard is counted", () => {
  const outbox = new Outbox();
  const microphone = new Microphone(outbox);
  microphone.speak(1);
  microphone.wait(7);
  microphone.speak(1);
  assert.equal(outbox.lostMs, 7000);
});
