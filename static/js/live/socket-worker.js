/**
 * The capture's dedicated Worker: owns the socket, the outbox and the journal.
 *
 * A hidden tab throttles its page, not this. Audio comes by a port straight from the audio thread;
 * the page only starts, pauses and stops, and is told how things stand:
 *
 *   status   {phase, keptMs, unsentMs, droppedMs, lostMs, sample, isPaused, reason, needsLogin,
 *            behindMs, isWaiting}
 *   refused  {code, reason}: nothing was started, or another page has it
 *   mode     {modes, modeMs, wishedMs, problem, isConnected}, see LatencyModes
 *   language {language, wished, problem, isConnected}, see Wish
 *   finishing, closed {recording}
 */

import { Backoff } from "./backoff.js";
import { RATE } from "./clock.js";
import { Journal } from "./journal.js";
import { LatencyModes } from "./latency-modes.js";
import { Outbox } from "./outbox.js";
import { packPacket } from "./packets.js";
import { TabLock } from "./tab-lock.js";
import { Wish } from "./wish.js";

const TICK_MS = 100;
const READY_TIMEOUT_MS = 10_000;
const CLOSED_TIMEOUT_MS = 10_000;
/** The server confirms audio every second: one that is silent so long is in trouble, then gone. */
const STALLED_AFTER_MS = 4000;
const DEAD_AFTER_MS = 10_000;
/** Bytes in the browser's own queue beyond which the network is the bottleneck. */
const FULL_SOCKET_BYTES = 128 * 1024;
/** Audio sent and not yet confirmed; well below the backlog at which the server closes. */
const WINDOW_SAMPLES = 60 * RATE;
/** What was kept is sent faster than it was spoken, but not so fast that the server refuses. */
const CATCH_UP_SPEED = 6;
const ALLOWANCE_MS = 2000;
/** More than this unsent is worth saying; less is a packet being filled. */
const CATCHING_UP_MS = 1500;

/** The engine repeats what it has to say about lag. */
const LAG_NEWS_MS = 5000;

const Code = { NORMAL: 1000, NOT_FOUND: 4404, BAD_MESSAGE: 4400, LOG_IN: 4401, IN_USE: 4409, ENDED: 4410, LATER: 4503 };

class CaptureSender {
  constructor({ session, address, isTakingOver, audioPort }) {
    this.session = session;
    this.address = address;
    this.latency = new LatencyModes();
    this.language = new Wish("");
    this.phase = "connecting";
    this.socket = null;
    this.backoff = new Backoff();
    this.allowanceMs = ALLOWANCE_MS;
    this.hasBeenReady = false;
    this.isTakingOver = isTakingOver;
    this.isWaiting = false;
    this.behindMs = 0;
    this.laggedMs = -LAG_NEWS_MS;
    this.problem = { code: "", reason: "" };
    this.waitingPort = audioPort;
  }

  async start() {
    const lock = new TabLock(this.session, () => this.#yield());
    if (!(await lock.take({ isTakingOver: this.isTakingOver }))) {
      this.#refuse("in_use_here", "This session is being captured in another tab of this browser.");
      return;
    }
    // Without a journal (a private window) only a reload loses audio.
    this.journal = await Journal.open().catch(() => null);
    const stored = await this.journal?.load(this.session).catch(() => null);
    if (this.phase === "refused") return; // yet another tab has taken over
    this.hasBeenReady = stored?.hasBeenReady ?? false;
    this.captureId = stored?.captureId ?? crypto.randomUUID();
    this.outbox = new Outbox(stored ?? {});
    this.#keep([]);
    if (this.waitingPort) this.listen(this.waitingPort);
    this.timer = setInterval(() => this.#tick(), TICK_MS);
    this.tickedMs = performance.now();
    this.#connect();
  }

  listen(port) {
    if (this.outbox === undefined) {
      this.waitingPort = port;
      return;
    }
    this.outbox.interrupt();
    port.onmessage = ({ data }) => {
      if (data.type === "audio") this.#keep(this.outbox.accept(data.samples, data.wallMs));
      else this.stop();
    };
  }

  pause() {
    this.#keep(this.outbox.pause());
  }

  resume() {
    this.#keep(this.outbox.resume());
  }

  stop() {
    if (this.outbox.isStopped) return;
    this.#keep(this.outbox.stop());
    this.phase = "stopping";
  }

  chooseMode(modeMs) {
    if (!this.outbox?.isStopped) this.latency.wish(modeMs);
    this.#askForMode();
    this.#reportMode();
  }

  chooseLanguage(language) {
    if (!this.outbox?.isStopped) this.language.wish(language);
    this.#askForLanguage();
    this.#reportLanguage();
  }

  /** Do not wait for the next attempt: the network came back, or a person asked. */
  connectNow() {
    if (this.socket !== null || this.phase === "closed") return;
    this.backoff.reset();
    clearTimeout(this.reconnectTimer);
    this.#connect();
  }

  /** The network is gone: the socket would find out only after minutes. */
  disconnect() {
    this.socket?.close();
    this.#lost(1006);
  }

  /** Another tab takes over: it goes on from the journal with what is kept, sent or not. */
  async #yield() {
    if (this.phase === "refused" || this.phase === "closed") return;
    if (this.outbox !== undefined) this.#keep(this.outbox.flush());
    const { journal, socket } = this;
    this.journal = this.socket = null;
    this.isReady = false;
    clearTimeout(this.reconnectTimer);
    socket?.close();
    await journal?.stored();
    this.#refuse("in_use_here", "Another tab of this browser has taken over the capture.");
  }

  #keep(added) {
    this.journal?.save(
      this.session,
      {
        captureId: this.captureId,
        hasBeenReady: this.hasBeenReady,
        state: this.outbox.state,
      },
      added,
    );
    this.#send();
  }

  #connect() {
    const socket = new WebSocket(this.address);
    this.socket = socket;
    this.isReady = false;
    this.heardMs = performance.now();
    socket.onopen = () => socket.send(JSON.stringify(this.#hello()));
    socket.onmessage = ({ data }) => {
      this.heardMs = performance.now();
      if (socket === this.socket) this.#hear(JSON.parse(data));
    };
    socket.onclose = ({ code }) => {
      if (socket === this.socket) this.#lost(code);
    };
  }

  #hello() {
    return {
      type: "hello",
      version: 1,
      capture_id: this.captureId,
      sample_rate: RATE,
      encoding: "pcm16",
      language: "", // the session's own, as the mode: it knows of a change
      mode_ms: 0,
      take_over: this.isTakingOver,
    };
  }

  #hear(event) {
    switch (event.type) {
      case "ready":
        this.#becomeReady(event);
        break;
      case "ack":
        this.journal?.forget(this.session, this.outbox.acknowledge(event.sample));
        break;
      case "state":
        this.isWaiting = event.state === "waiting";
        break;
      case "mode":
        this.outbox.usePackets(event.packet_ms);
        this.latency.becomes(event);
        this.#reportMode();
        break;
      case "mode_refused":
        this.latency.refuse(event);
        this.#reportMode();
        break;
      case "language":
        this.language.becomes(event.language);
        this.#reportLanguage();
        break;
      case "language_refused":
        this.language.refuse(event.language, event.reason);
        this.#reportLanguage();
        break;
      case "lag":
        this.behindMs = event.behind_ms;
        this.laggedMs = performance.now();
        break;
      case "error":
        this.problem = { code: event.code, reason: event.reason };
        break;
      case "closed":
        this.#close(event.recording ?? null);
        break;
    }
  }

  #becomeReady(event) {
    this.isTakingOver = false;
    this.problem = { code: "", reason: "" };
    this.backoff.reset();
    const isFirst = !this.hasBeenReady;
    this.hasBeenReady = true;
    if (isFirst) this.outbox.startBehind(event.next_sample);
    this.outbox.ready(event.packet_ms, event.sample);
    this.isWaiting = event.state === "waiting";
    this.phase = this.outbox.isStopped ? "stopping" : "live";
    this.isReady = true;
    this.latency.becomes(event);
    this.language.becomes(event.language);
    this.#askForMode();
    this.#askForLanguage();
    this.#reportMode();
    this.#reportLanguage();
    this.#keep(isFirst ? this.outbox.items : []);
  }

  /** What is wished and not answered; asked for again after a lost connection. */
  #askForMode() {
    const { message } = this.latency;
    if (message === null || !this.isReady || this.outbox.isStopped) return;
    this.socket.send(JSON.stringify(message));
  }

  #askForLanguage() {
    const { wished } = this.language;
    if (wished === null || !this.isReady || this.outbox.isStopped) return;
    this.socket.send(JSON.stringify({ type: "set_language", language: wished }));
  }

  #lost(code) {
    if (this.socket === null) return;
    this.socket = null;
    this.isReady = false;
    clearTimeout(this.finishingTimer);
    const { code: name, reason } = this.problem;
    if (this.phase === "closed") return;
    if (code === Code.NORMAL && this.outbox.isStopped) {
      this.#close(null); // the server has everything, and finishes without us
    } else if (code === Code.ENDED) {
      if (this.outbox.isStopped) this.#close(null);
      else this.#end(name || "ended", reason || "This session has ended.");
    } else if (code === Code.IN_USE) {
      this.#refuseUse(name || "in_use", reason || "This session is being captured from another page.");
    } else if (code === Code.NOT_FOUND || code === Code.BAD_MESSAGE) {
      this.#end(name || "refused", reason || "The server refused this session.");
    } else if (code === Code.LATER && !this.hasBeenReady) {
      this.#end(name || "later", reason || "The server cannot take another session now.");
    } else {
      if (this.phase === "live") this.phase = "reconnecting";
      this.#reportMode();
      this.#reportLanguage();
      this.needsLogin = code === Code.LOG_IN;
      this.reconnectTimer = setTimeout(() => this.#connect(), this.backoff.next());
    }
  }

  #refuse(code, reason) {
    this.phase = "refused";
    clearInterval(this.timer);
    postMessage({ type: "refused", code, reason });
  }

  /** Another page has the session. What this one kept of a capture that was live stays. */
  #refuseUse(code, reason) {
    if (this.hasBeenReady) this.#refuse(code, reason);
    else this.#end(code, reason);
  }

  async #end(code, reason) {
    await this.#forgetAll();
    this.#refuse(code, reason);
  }

  async #close(recording) {
    this.phase = "closed";
    await this.#forgetAll();
    postMessage({ type: "closed", recording });
  }

  async #forgetAll() {
    clearInterval(this.timer);
    const journal = this.journal;
    this.journal = null;
    this.isReady = false;
    await journal?.remove(this.session);
    this.socket?.close();
  }

  #tick() {
    const now = performance.now();
    this.allowanceMs = Math.min(
      ALLOWANCE_MS,
      this.allowanceMs + (now - this.tickedMs) * CATCH_UP_SPEED,
    );
    this.tickedMs = now;
    const silenceMs = now - this.heardMs;
    if (this.socket !== null && !this.isReady && silenceMs > READY_TIMEOUT_MS) this.disconnect();
    if (this.isReady && this.outbox.cursor > 0 && silenceMs > DEAD_AFTER_MS) this.disconnect();
    this.#send();
    this.#report();
  }

  #send() {
    if (!this.isReady) return;
    for (let item = this.outbox.peek(); item !== null; item = this.outbox.peek()) {
      if (this.socket.bufferedAmount > FULL_SOCKET_BYTES) return;
      if (item.kind === "audio") {
        if (item.firstSample - this.outbox.acknowledgedSample > WINDOW_SAMPLES) return;
        if (this.allowanceMs <= 0) return;
        this.allowanceMs -= (item.samples.length * 1000) / RATE;
        this.socket.send(packPacket(item.sequence, item.firstSample, item.samples));
      } else {
        this.socket.send(JSON.stringify({ type: item.kind, sample: item.firstSample }));
        if (item.kind === "stop") this.#awaitClosed();
      }
      this.outbox.next();
    }
  }

  #awaitClosed() {
    clearTimeout(this.finishingTimer);
    this.finishingTimer = setTimeout(() => postMessage({ type: "finishing" }), CLOSED_TIMEOUT_MS);
  }

  #shownPhase() {
    if (this.phase !== "live") return this.phase;
    const isSilent = performance.now() - this.heardMs > STALLED_AFTER_MS;
    if (isSilent && this.outbox.keptMs > STALLED_AFTER_MS) return "stalled";
    return this.outbox.unsentMs > CATCHING_UP_MS ? "catching_up" : "live";
  }

  #reportMode() {
    const { modes, modeMs, wishedMs, problem } = this.latency;
    postMessage({ type: "mode", modes, modeMs, wishedMs, problem, isConnected: this.isReady });
  }

  #reportLanguage() {
    const { inForce, wished, problem } = this.language;
    postMessage({ type: "language", language: inForce, wished, problem, isConnected: this.isReady });
  }

  #report() {
    postMessage({
      type: "status",
      phase: this.#shownPhase(),
      keptMs: this.outbox.keptMs,
      unsentMs: this.outbox.unsentMs,
      droppedMs: this.outbox.droppedMs,
      lostMs: this.outbox.lostMs,
      sample: this.outbox.clock.nextSample,
      isPaused: this.outbox.clock.isPaused,
      isWaiting: this.isWaiting,
      needsLogin: Boolean(this.needsLogin) && !this.isReady,
      reason: this.isReady ? "" : this.problem.reason,
      behindMs: performance.now() - this.laggedMs < LAG_NEWS_MS ? this.behindMs : 0,
    });
  }
}

let sender = null;
let started = null;

const OBEY = {
  audio: ({ audioPort }) => sender.listen(audioPort),
  mode: ({ modeMs }) => sender.chooseMode(modeMs),
  language: ({ language }) => sender.chooseLanguage(language),
  // These need the outbox, which the journal gives back after a reload.
  pause: () => started.then(() => sender.pause()),
  resume: () => started.then(() => sender.resume()),
  stop: () => started.then(() => sender.stop()),
};

self.onmessage = ({ data }) => {
  if (data.type === "start") {
    sender = new CaptureSender(data);
    started = sender.start();
  } else {
    OBEY[data.type](data);
  }
};
self.addEventListener("offline", () => sender?.disconnect());
self.addEventListener("online", () => sender?.connectNow());
