/**
 * Lines for a room's screen: how text is broken into them, and which of them are shown.
 *
 * Lines are filled from the first on, so that more words at the end never change a line above, and
 * what is shown only ever moves up, by whole lines. Draws nothing.
 */

/** As in subtitles: 42 narrow or 20 wide characters fill a line. */
export const COLUMNS = 42;
const WIDE_COLUMNS = 2.1;

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/;
/** May not begin a line. */
const CLOSING = /^[\p{Pe}\p{Pf}\p{Po}]+$/u;

function columnsOf(text) {
  let columns = 0;
  for (const character of text) columns += WIDE.test(character) ? WIDE_COLUMNS : 1;
  return columns;
}

/** Pieces between which a line may end, each with the space that stands before it. */
function piecesOf(text) {
  const pieces = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const parts = WIDE.test(word) ? [...word] : [word];
    parts.forEach((part, index) => {
      const last = pieces.at(-1);
      const isJoined =
        index > 0 && (CLOSING.test(part) || (!WIDE.test(part) && !WIDE.test(parts[index - 1])));
      if (isJoined) last.text += part;
      else pieces.push({ text: part, space: index === 0 && pieces.length > 0 ? " " : "" });
    });
  }
  return pieces;
}

/** Lines of `text`, none of more than COLUMNS, and each of which `fits`. */
export function breakLines(text, fits = () => true) {
  const isRoomy = (line) => columnsOf(line) <= COLUMNS && fits(line);
  const lines = [];
  let line = "";
  for (const { text: piece, space } of piecesOf(text)) {
    if (line !== "" && isRoomy(line + space + piece)) {
      line += space + piece;
      continue;
    }
    if (line !== "") lines.push(line);
    line = "";
    for (const character of piece) { // a word that no line holds is broken anywhere
      if (line !== "" && !isRoomy(line + character)) {
        lines.push(line);
        line = "";
      }
      line += character;
    }
  }
  if (line !== "") lines.push(line);
  return lines;
}

function isBefore(a, b) {
  return a.utterance < b.utterance || (a.utterance === b.utterance && a.number < b.number);
}

/** Which lines a screen shows, given that those it showed never move down. */
export class RoomLines {
  constructor() {
    this.first = null;
  }

  /** `lines` of {utterance, number, text} in order; at most `count` of them are returned. */
  shown(lines, count) {
    const newest = Math.max(0, lines.length - count);
    let start = newest;
    if (this.first !== null) {
      const before = lines.findIndex((line) => !isBefore(line, this.first));
      // Words that were taken back may leave fewer lines than stood there.
      start = Math.max(newest, before === -1 ? lines.length - 1 : before);
    }
    this.first = lines[Math.max(0, start)] ?? null;
    return lines.slice(Math.max(0, start), Math.max(0, start) + count);
  }

  /** Other letters make other lines. */
  reset() {
    this.first = null;
  }
}
