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

/**
 * Which lines a screen shows, given that those it showed never move down.
 *
 * An utterance that others stand below keeps its rows when its words become fewer: what stands below
 * stays where it is read, and the new words stand in the rows that are still on the screen. Rows that
 * became empty are the first to go when the newest words need room.
 */
export class RoomLines {
  constructor() {
    this.reset();
  }

  /**
   * `lines` of {utterance, number, text} in order; at most `count` rows are returned, each a line
   * with the `number` of its row in its utterance, or one whose text is empty.
   */
  shown(lines, count) {
    const rows = this.#rowsOf(lines);
    const place = this.first === null ? 0 : this.#placeOfFirst(rows);
    if (this.canCloseUp) this.#closeUp(rows, place, rows.length - place - count);
    const start = Math.max(place, rows.length - count);
    this.first = rows[start] ?? null;
    return rows.slice(start, start + count);
  }

  /** Other letters make other lines. */
  reset() {
    this.first = null;
    this.canCloseUp = true;
    /** By utterance: how many lines it has, in how many rows, and how many rows are above them. */
    this.held = new Map();
  }

  #placeOfFirst(rows) {
    const { utterance } = this.first;
    const place = rows.findIndex((row) => !isBefore(row, this.first));
    if (place === -1) return Math.max(0, rows.length - 1);
    // Words that were taken back may leave fewer lines than stood there: the last of them is shown.
    const isGone = rows[place].utterance !== utterance && rows[place - 1]?.utterance === utterance;
    return isGone ? place - 1 : place;
  }

  #rowsOf(lines) {
    const newest = Math.max(-Infinity, ...this.held.keys());
    const held = new Map();
    const rows = [];
    for (const utterance of this.#utterancesOf(lines, newest)) {
      const own = lines.filter((line) => line.utterance === utterance);
      const place = this.#placeIn(utterance, own.length, newest);
      held.set(utterance, place);
      for (let number = 0; number < place.rows; number += 1) {
        const line = own[number - place.above] ?? { utterance, text: "" };
        rows.push({ ...line, number });
      }
    }
    // Below words that became more, a row that goes would let what stands between move down.
    this.canCloseUp = [...held].every(
      ([utterance, { rows: now }]) => utterance === newest || now <= (this.held.get(utterance)?.rows ?? now),
    );
    this.held = held;
    return rows;
  }

  /** Takes up to `excess` empty rows from the screen, the lowest first: most lines stand still. */
  #closeUp(rows, place, excess) {
    for (let at = rows.length - 1, left = excess; at >= place && left > 0; at -= 1) {
      if (rows[at].text !== "") continue;
      const [{ utterance }] = rows.splice(at, 1);
      const held = this.held.get(utterance);
      this.held.set(utterance, { ...held, rows: held.rows - 1 });
      left -= 1;
    }
  }

  /** In order; with those on the screen that have no word left, and others below. */
  #utterancesOf(lines, newest) {
    const emptied = [...this.held.keys()].filter(
      (utterance) => utterance >= this.first?.utterance && utterance !== newest,
    );
    const all = new Set([...lines.map((line) => line.utterance), ...emptied]);
    return [...all].sort((a, b) => a - b);
  }

  #placeIn(utterance, lines, newest) {
    const old = this.held.get(utterance);
    if (old === undefined || utterance === newest) return { lines, rows: lines, above: 0 };
    if (old.lines === lines) return old;
    const rows = Math.max(lines, old.rows);
    const gone = this.first?.utterance === utterance ? this.first.number : 0;
    return { lines, rows, above: Math.min(gone, rows - lines) };
  }
}
