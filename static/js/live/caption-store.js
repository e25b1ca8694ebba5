/**
 * What has been said so far, as a captions page must show it.
 *
 * Owns order, duplicates and holes; draws nothing. Entries are finals and marks, by their time. Of
 * one utterance the highest `seq` wins, whatever order changes come in. `seq` numbers every stored
 * change without holes, so a number that is missing means that something was lost on the way.
 */

export class CaptionStore {
  constructor() {
    this.entries = [];
    this.partial = null;
    this.byKey = new Map();
    /** Everything up to this `seq` is known. */
    this.knownSeq = 0;
    this.aheadSeqs = new Set();
    this.headSeq = 0;
  }

  /**
   * Take one event. Returns what a page must do, or null:
   * {kind: "insert", entry, index} | {kind: "replace", entry, index} | {kind: "partial"}.
   * After an insert or a replace, `partial` may have been cleared.
   */
  apply(event) {
    switch (event.type) {
      case "final":
      case "refined":
        return this.#applyFinal(event);
      case "gap":
      case "paused":
        return this.#applyMark(event);
      case "partial":
        return this.#applyPartial(event);
      case "endpoint":
        if (this.partial === null) return null;
        this.partial = null;
        return { kind: "partial" };
      default:
        if (event.seq !== undefined && event.type !== "head" && event.type !== "ready") this.#note(event.seq);
        return null;
    }
  }

  /** The session has ended: words that never became final are not part of it. */
  end() {
    this.partial = null;
    return { kind: "partial" };
  }

  /** History up to `seq` has been read: what is missing below it was superseded, not lost. */
  settle(seq) {
    this.knownSeq = Math.max(this.knownSeq, seq);
    for (const ahead of this.aheadSeqs) if (ahead <= this.knownSeq) this.aheadSeqs.delete(ahead);
    this.#drainAhead();
  }

  /** The server's newest change has this `seq`. */
  head(seq) {
    this.headSeq = Math.max(this.headSeq, seq);
  }

  /** Changes were lost on the way; those above `knownSeq` must be read again. */
  get isMissingChanges() {
    return this.aheadSeqs.size > 0 || this.headSeq > this.knownSeq;
  }

  /** All text, as one would copy it. `timeOf` gives the words before a line, or "". */
  asText(timeOf = () => "") {
    return this.entries
      .filter((entry) => entry.kind === "final")
      .map((entry) => [timeOf(entry), entry.text].filter(Boolean).join("  "))
      .join("\n");
  }

  #note(seq) {
    if (seq > this.knownSeq) this.aheadSeqs.add(seq);
    this.#drainAhead();
    this.headSeq = Math.max(this.headSeq, seq);
  }

  #drainAhead() {
    while (this.aheadSeqs.delete(this.knownSeq + 1)) this.knownSeq += 1;
  }

  #applyFinal(event) {
    this.#note(event.seq);
    if (this.partial !== null && this.partial.utterance <= event.utterance) this.partial = null;
    return this.#put(`utterance ${event.utterance}`, {
      kind: "final",
      utterance: event.utterance,
      seq: event.seq,
      startMs: event.start_ms,
      endMs: event.end_ms,
      text: event.text,
      language: event.language ?? "",
      isRefined: event.type === "refined",
    });
  }

  #applyMark(event) {
    this.#note(event.seq);
    return this.#put(`${event.type} ${event.start_ms}`, {
      kind: event.type,
      seq: event.seq,
      startMs: event.start_ms,
      endMs: event.end_ms ?? event.start_ms,
    });
  }

  #applyPartial(event) {
    if (this.byKey.has(`utterance ${event.utterance}`)) return null;
    if (this.partial !== null && event.utterance < this.partial.utterance) return null;
    this.partial = {
      utterance: event.utterance,
      startMs: event.start_ms,
      text: event.text,
    };
    return { kind: "partial" };
  }

  #put(key, entry) {
    const old = this.byKey.get(key);
    if (old !== undefined && old.seq >= entry.seq) return null;
    this.byKey.set(key, entry);
    if (old !== undefined) {
      const index = this.entries.indexOf(old);
      this.entries[index] = entry;
      return { kind: "replace", entry, index };
    }
    const index = this.#placeOf(entry);
    this.entries.splice(index, 0, entry);
    return { kind: "insert", entry, index };
  }

  /** Searched from the end, where nearly every entry belongs. */
  #placeOf(entry) {
    let index = this.entries.length;
    while (index > 0 && isAfter(this.entries[index - 1], entry)) index -= 1;
    return index;
  }
}

function isAfter(a, b) {
  if (a.kind === "final" && b.kind === "final") return a.utterance > b.utterance;
  return a.startMs > b.startMs;
}
