/**
 * Captions on a page: socket, store, view, clock and the words for how things stand.
 *
 * The captions page, the room view and the capture page show one; the speaker sees what readers see.
 * Events: `update` (how things stand has changed), `title` {title}, `readers` {count}.
 */

import { linkToken } from "./captions-access.js";
import { CaptionStore } from "./caption-store.js";
import { CaptionsSocket } from "./captions-socket.js";
import { CaptionsView, languageOf } from "./captions-view.js";
import { socketAddress } from "./addresses.js";
import { HeardCaptions } from "./heard.js";

const RETRY_STATUS_MS = 5000;
const SOON_MS = 500;

export class CaptionsPanel extends EventTarget {
  /**
   * `root` holds the view's elements; `data` has captionsSocket, status (addresses), language,
   * timeZone ("" for the browser's);
   * `View` is CaptionsView or what draws in its place.
   */
  constructor(root, preferences, data, View = CaptionsView) {
    super();
    this.statusAddress = data.status;
    this.preferences = preferences;
    this.status = { state: "created", clock: [], recording: null };
    this.store = new CaptionStore();
    this.socket = new CaptionsSocket(socketAddress(data.captionsSocket), this.store, linkToken());
    this.view = new View(root, this.store, {
      language: data.language,
      timeZone: data.timeZone,
    });
    this.heard = new HeardCaptions(root.querySelector(".captions-heard"));
    this.language = data.language;
    this.connection = { phase: "connecting", reason: "" };
    this.socket.addEventListener("change", ({ detail }) => this.#changed(detail));
    this.socket.addEventListener("connection", ({ detail }) => {
      this.connection = detail;
      this.dispatchEvent(new Event("update"));
    });
    this.socket.addEventListener("state", ({ detail }) => this.#stateChanged(detail));
    this.socket.addEventListener("title", ({ detail }) =>
      this.dispatchEvent(new CustomEvent("title", { detail })),
    );
    this.socket.addEventListener("readers", ({ detail }) =>
      this.dispatchEvent(new CustomEvent("readers", { detail })),
    );
    preferences.addEventListener("change", () => this.#preferencesChanged());
    window.addEventListener("online", () => this.socket.connectNow());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.socket.connectNow();
    });
    this.#drawTimes();
    this.socket.connect();
    this.refreshStatus();
  }

  get isEmpty() {
    return this.store.entries.length === 0 && this.store.partial === null;
  }

  copyText() {
    return this.store.asText((entry) => this.view.timeOf(entry));
  }

  /** The clock, and the recording once there is one: what the socket does not say. */
  async refreshStatus() {
    clearTimeout(this.statusTimer);
    try {
      const answer = await fetch(this.statusAddress, { cache: "no-store" });
      if (!answer.ok) return;
      const { state, clock, recording } = await answer.json();
      this.status = { ...this.status, clock, recording };
      if (state === "ended") this.status.state = state;
      this.#drawTimes();
      this.dispatchEvent(new Event("update"));
      if (state === "ending") this.#refreshLater();
    } catch {
      this.#refreshLater();
    }
  }

  #refreshLater(waitMs = RETRY_STATUS_MS) {
    clearTimeout(this.statusTimer);
    this.statusTimer = setTimeout(() => this.refreshStatus(), waitMs);
  }

  #changed(change) {
    this.view.draw(change);
    this.#say(change);
    this.#followPause();
    // The first words come with the clock's first pair, a pause with another one.
    const isNewsOfClock = this.status.clock.length === 0 || change.entry?.kind === "paused";
    if (change.kind === "insert" && isNewsOfClock) this.#refreshLater(SOON_MS);
    this.dispatchEvent(new Event("update"));
  }

  #say({ kind, entry }) {
    if (kind !== "insert" || entry.kind !== "final" || !this.socket.isCaughtUp) return;
    this.heard.say(entry.text, languageOf(entry.text, entry.language || this.language));
  }

  /** A pause comes as a mark, and words that stand behind it end it; history tells neither. */
  #followPause() {
    const last = this.store.entries.at(-1);
    if (this.socket.isFetching || last === undefined) return;
    const isSpeaking = (this.store.partial?.startMs ?? -1) >= last.startMs;
    const isPaused = last.kind === "paused" && !isSpeaking;
    if (this.status.state === "live" && isPaused) this.status.state = "paused";
    else if (this.status.state === "paused" && !isPaused) this.status.state = "live";
  }

  #stateChanged({ state }) {
    this.status = { ...this.status, state };
    this.dispatchEvent(new Event("update"));
    this.refreshStatus();
  }

  #preferencesChanged() {
    this.#drawTimes();
    this.view.refit();
  }

  #drawTimes() {
    this.view.setTimes(this.status.clock, this.preferences.values.times);
  }
}
