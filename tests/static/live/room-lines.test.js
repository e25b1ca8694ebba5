import assert from "node:assert/strict";
import test from "node:test";

import { breakLines, COLUMNS, RoomLines } from "../../../static/js/live/room-lines.js";

const TEXT =
  "Let me begin with the move, since most of you will have questions about it, and the lifts on the north side are not ready.";

test("no line has more than 42 columns, and no word is lost", () => {
  const lines = breakLines(TEXT);
  assert.equal(lines.join(" "), TEXT);
  assert.ok(lines.every((line) => line.length <= COLUMNS));
  assert.ok(lines.length < 5);
});

test("words that come later change no line above the last", () => {
  const words = TEXT.split(" ");
  let before = [];
  for (let count = 1; count <= words.length; count += 1) {
    const lines = breakLines(words.slice(0, count).join(" "));
    assert.deepEqual(lines.slice(0, before.length - 1), before.slice(0, -1));
    before = lines;
  }
});

test("Chinese has twenty characters a line, and no stop at the head of one", () => {
  const text = "今天我们主要讨论三件事：搬迁到新大楼、预算的情况以及，字幕系统的试用情况。";
  const lines = breakLines(text);
  assert.equal(lines.join(""), text);
  assert.ok(lines.every((line) => [...line].length <= 20));
  assert.ok(lines.every((line) => !/^[，。、：]/.test(line)));
});

test("a screen that holds less breaks sooner, a word that no line holds anywhere", () => {
  const fits = (line) => line.length <= 10;
  assert.deepEqual(breakLines("Donaudampfschiff fährt", fits), ["Donaudampf", "schiff", "fährt"]);
  assert.deepEqual(breakLines("", fits), []);
  assert.deepEqual(breakLines("  ", fits), []);
});

test("characters beyond the first plane stay whole", () => {
  assert.deepEqual(breakLines("𠀀𠀁😀", (line) => [...line].length <= 1), ["𠀀", "𠀁", "😀"]);
});

function linesOf(...counts) {
  return counts.flatMap((count, utterance) =>
    Array.from({ length: count }, (_, number) => ({ utterance, number, text: `${utterance}.${number}` })),
  );
}

const textsOf = (lines) => lines.map((line) => line.text);

test("the newest lines are shown, and they shift by whole lines", () => {
  const room = new RoomLines();
  assert.deepEqual(textsOf(room.shown(linesOf(), 3)), []);
  assert.deepEqual(textsOf(room.shown(linesOf(2), 3)), ["0.0", "0.1"]);
  assert.deepEqual(textsOf(room.shown(linesOf(2, 1), 3)), ["0.0", "0.1", "1.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(2, 2), 3)), ["0.1", "1.0", "1.1"]);
});

test("words that are taken back move no line down", () => {
  const room = new RoomLines();
  room.shown(linesOf(2, 2), 3);
  assert.deepEqual(textsOf(room.shown(linesOf(2, 1), 3)), ["0.1", "1.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(2, 1, 1), 3)), ["0.1", "1.0", "2.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(2, 1, 2), 3)), ["1.0", "2.0", "2.1"]);
});

test("an utterance that lost all its shown lines leaves its last one", () => {
  const room = new RoomLines();
  assert.deepEqual(textsOf(room.shown(linesOf(5), 2)), ["0.3", "0.4"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1), 2)), ["0.0"]);
});

test("other letters begin anew", () => {
  const room = new RoomLines();
  room.shown(linesOf(4), 2);
  room.reset();
  assert.deepEqual(textsOf(room.shown(linesOf(4), 4)), ["0.0", "0.1", "0.2", "0.3"]);
});

test("refined words that need fewer lines show, and what stands below them stays", () => {
  const room = new RoomLines();
  assert.deepEqual(textsOf(room.shown(linesOf(1, 3, 1), 3)), ["1.1", "1.2", "2.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 1, 1), 3)), ["1.0", "", "2.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 1, 2), 3)), ["1.0", "2.0", "2.1"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 1, 3), 3)), ["2.0", "2.1", "2.2"]);
});

test("of refined words whose first rows have left the screen the last are shown", () => {
  const room = new RoomLines();
  assert.deepEqual(textsOf(room.shown(linesOf(1, 3, 2), 3)), ["1.2", "2.0", "2.1"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 2, 2), 3)), ["1.1", "2.0", "2.1"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 1, 2), 3)), ["1.0", "2.0", "2.1"]);
});

test("refined words between others keep their rows", () => {
  const room = new RoomLines();
  assert.deepEqual(textsOf(room.shown(linesOf(1, 2, 1), 4)), ["0.0", "1.0", "1.1", "2.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 1, 1), 4)), ["0.0", "1.0", "", "2.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 0, 1), 4)), ["0.0", "", "", "2.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 2, 1), 4)), ["0.0", "1.0", "1.1", "2.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 3, 1), 4)), ["1.0", "1.1", "1.2", "2.0"]);
});

test("an empty row below words that became more stays, so that nothing moves down", () => {
  const room = new RoomLines();
  assert.deepEqual(textsOf(room.shown(linesOf(1, 2, 1), 4)), ["0.0", "1.0", "1.1", "2.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(1, 1, 1), 4)), ["0.0", "1.0", "", "2.0"]);
  assert.deepEqual(textsOf(room.shown(linesOf(2, 1, 1), 4)), ["0.1", "1.0", "", "2.0"]);
});

test("whatever is refined, no line of another utterance moves down or comes back", () => {
  const room = new RoomLines();
  let random = 7;
  const upTo = (most) => (random = (random * 48271) % 2147483647) % most;
  const counts = [];
  let before = new Map();
  for (let step = 0; step < 2000; step += 1) {
    if (counts.length === 0 || upTo(3) === 0) counts.push(1);
    const changed = upTo(2) === 0 ? counts.length - 1 : Math.max(0, counts.length - 1 - upTo(4));
    const isLast = changed === counts.length - 1;
    counts[changed] = isLast ? counts[changed] + upTo(2) : Math.max(1, counts[changed] - upTo(3));
    const shown = room.shown(linesOf(...counts), 4);
    const after = new Map(
      shown.map((line, row) => [line.text, { row, line }]).filter(([text]) => text !== ""),
    );
    const oldest = Math.min(...[...before.values()].map(({ line }) => line.utterance));
    for (const [text, { row, line }] of after) {
      if (line.utterance === changed || before.size === 0) continue;
      assert.ok(line.utterance >= oldest);
      assert.ok(row <= (before.get(text)?.row ?? 4));
    }
    before = after;
  }
});
