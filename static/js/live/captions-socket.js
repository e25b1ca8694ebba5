/**
 * The captions socket of a page, and what came over it: reconnects, fills holes, never repeats.
 *
 * Events: `change` {the store's change}; `state` {state, recording}; `connection` {phase, reason}
 * with phase connecting, open, lost or refused; `title` {title}; `lag` {behindMs}; `readers` {count}
 * (for the speaker's page alone).
 */

import { Backoff } from "./backoff.js";
import { linkMessage } from "./captions-access.js";
import { CaptionStore } from "./caption-store.js";

const REFETCH_EVERY_MS = 1000;
/** The server says `head` every five seconds: silence for longer is a dead connection. */
const DEAD_AFTER_MS = 20_000;

const Code = { LOG_IN: 4401, NOT_FOUND: 4404, TOO_FAST: 4429 };

export class CaptionsSocket extends EventTarget {
  /** `token` is that of a link, where the page was opened by one. */
  constructor(address, store = new CaptionStore(), token = "") {
    super();
    this.address = address;
    this.token = token;
    this.store = store;
    this.backoff = new Backoff();
    this.isEnded = false;
    /** What was said before this page came has been read: what comes now is new. */
    this.isCaughtUp = false;
    this.problem = "";
  }

  connect() {
    clearTimeout(this.timer);
    const address = new URL(this.address);
    address.searchParams.set("after_seq", this.store.knownSeq);
    const socket = new WebSocket(address);
    this.socket = socket;
    if (this.token !== "") socket.onopen = () => socket.send(linkMessage(this.token));
    this.#startFetching();
    this.#heard();
    socket.onmessage = ({ data }) => {
      if (socket !== this.socket) return;
      this.#heard();
      this.#hear(JSON.parse(data));
    };
    socket.onclose = ({ code }) => {
      if (socket === this.socket) this.#lost(code);
    };
  }

  /** Do not wait for the next attempt. */
  connectNow() {
    if (this.socket === null && !this.isEnded) {
      this.backoff.reset();
      this.connect();
    }
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  #heard() {
    clearTimeout(this.deadTimer);
    this.deadTimer = setTimeout(() => {
      this.socket?.close();
      this.#lost(1006);
    }, DEAD_AFTER_MS);
  }

  #hear(event) {
    switch (event.type) {
      case "ready":
        this.backoff.reset();
        this.#tell("title", { title: event.title });
        this.#tell("connection", { phase: "open", reason: "" });
        this.#setState(event.state, event.recording);
        break;
      case "history":
        this.hasReadHistory = true;
        for (const change of event.events) this.#apply(change);
        break;
      case "head":
        this.store.head(event.seq);
        this.#settle(event.seq);
        break;
      case "state":
        this.#setState(event.state, event.recording);
        break;
      case "closed":
        this.#apply(event);
        this.#setState("ended", event.recording);
        break;
      case "readers":
        this.#tell("readers", { count: event.count });
        break;
      case "lag":
        this.#tell("lag", { behindMs: event.behind_ms });
        break;
      case "error":
        this.problem = event.reason ?? "";
        break;
      default:
        this.#apply(event);
    }
    this.#refetchMissing();
  }

  #apply(event) {
    const change = this.store.apply(event);
    if (change !== null) this.#tell("change", change);
  }

  #startFetching() {
    this.isFetching = true;
    this.hasReadHistory = false;
    this.emptyHeads = 0;
    this.fetchedMs = performance.now();
  }

  /**
   * A `head` ends the history that was asked for. One that follows no history at all may be the
   * regular one, on its way before the answer: only a second one is believed.
   */
  #settle(seq) {
    if (!this.isFetching) return;
    this.emptyHeads += 1;
    if (!this.hasReadHistory && this.emptyHeads < 2) return;
    this.isFetching = false;
    this.isCaughtUp = true;
    this.store.settle(seq);
  }

  #refetchMissing() {
    const isSoon = performance.now() - this.fetchedMs < REFETCH_EVERY_MS;
    if (!this.store.isMissingChanges || this.isFetching || isSoon || this.socket === null) return;
    this.#startFetching();
    this.socket.send(JSON.stringify({ type: "refetch", after_seq: this.store.knownSeq }));
  }

  #setState(state, recording) {
    this.isEnded = state === "ended" && Boolean(recording);
    if (state === "ended") this.#tell("change", this.store.end());
    this.#tell("state", { state, recording: recording ?? null });
  }

  #lost(code) {
    this.socket = null;
    clearTimeout(this.deadTimer);
    const reason = this.problem;
    this.problem = "";
    const needsLogin = code === Code.LOG_IN && this.token === "";
    const isRefused = code === Code.NOT_FOUND || code === Code.LOG_IN || (code === Code.TOO_FAST && this.token !== "");
    if (isRefused) {
      this.#tell("connection", {
        phase: "refused",
        needsLogin,
        reason: reason || "These captions are not open to you.",
      });
    } else if (!this.isEnded) {
      this.#tell("connection", { phase: "lost", reason });
    }
    // A person may log in again in another tab: then the captions go on here.
    const isTriedAgain = needsLogin || !(isRefused || this.isEnded);
    if (isTriedAgain) this.timer = setTimeout(() => this.connect(), this.backoff.next());
  }
}
