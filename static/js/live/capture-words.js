/** How a capture stands, in words: the large state, the strip of the connection, what is wrong. */

import { msOfSamples } from "./clock.js";
import { formatClock, formatLength } from "../times.js";

const CAUGHT_UP_MS = 6000;
/** A connection that stands at once needs no words. */
const SLOW_START_MS = 2500;
const WORTH_SAYING_BEHIND_MS = 4000;
const WORTH_SAYING_LOST_MS = 1000;

const STATES = {
  connecting: "Starting",
  live: "Live",
  catching_up: "Live",
  stalled: "Live",
  reconnecting: "Reconnecting",
  stopping: "Finishing",
};

const ACTS = { wake: "Continue", share: "Share again" };

export class CaptureWords {
  /** `root` is the part of the page that is shown during a capture. */
  constructor(root) {
    this.state = root.querySelector(".capture-state");
    this.stateWords = root.querySelector(".capture-state-words");
    this.elapsed = root.querySelector(".capture-elapsed");
    this.link = root.querySelector(".capture-link");
    this.trouble = root.querySelector(".capture-trouble");
    this.pause = root.querySelector("#pause");
    this.stop = root.querySelector("#stop");
    this.startedMs = performance.now();
    this.hadTrouble = false;
    this.caughtUpUntilMs = 0;
    this.lostMs = 0;
    this.gapMs = 0;
    this.gapUntilMs = 0;
  }

  show(status) {
    const isPaused = status.isPaused && status.phase === "live";
    this.state.dataset.state = isPaused ? "paused" : status.phase;
    say(this.stateWords, isPaused ? "Paused" : STATES[status.phase]);
    say(this.elapsed, formatClock(msOfSamples(status.sample)));
    this.#showPause(status);
    this.#showLink(status);
  }

  /** What is wrong with what is heard; `act` ("wake" or "share") offers a button that mends it. */
  showTrouble(sentence, act = "") {
    this.trouble.hidden = sentence === "";
    say(this.trouble.querySelector("p"), sentence);
    const button = this.trouble.querySelector("button");
    button.hidden = act === "";
    button.dataset.act = act;
    say(button, ACTS[act] ?? "");
  }

  #showPause({ isPaused, phase }) {
    this.pause.setAttribute("aria-pressed", String(isPaused));
    say(this.pause.querySelector(".button-words"), isPaused ? "Continue" : "Pause");
    this.pause.disabled = phase === "stopping";
    this.stop.disabled = phase === "stopping";
  }

  #showLink(status) {
    const [sentence, tone] = this.#linkSentence(status);
    this.link.hidden = sentence === "";
    this.link.classList.toggle("strip-warning", tone === "warning");
    say(this.link.querySelector("p"), sentence);
  }

  #linkSentence(status) {
    const now = performance.now();
    const kept = formatLength(status.keptMs);
    switch (status.phase) {
      case "connecting":
        if (now - this.startedMs < SLOW_START_MS) return ["", ""];
        return [`Connecting. What you say is kept: ${kept} so far.`, "warning"];
      case "stalled":
        this.hadTrouble = true;
        return [`The server does not answer. Nothing is lost: ${kept} kept here.`, "warning"];
      case "reconnecting":
        this.hadTrouble = true;
        if (status.needsLogin) {
          return [`Your log-in has ended. Log in again in another tab; nothing is lost: ${kept} kept here.`, "warning"];
        }
        return [reconnectingSentence(kept, status.reason), "warning"];
      case "catching_up":
        this.hadTrouble = true;
        return [`Connected again. Sending what was kept here: ${formatLength(status.unsentMs)} to go.`, "warning"];
      case "stopping":
        if (status.keptMs < 3000) return ["Sending the last words.", ""];
        return [`Leave this page open: ${kept} are still to be saved.`, "warning"];
      default:
        return this.#liveSentence(status, now);
    }
  }

  #liveSentence(status, now) {
    if (status.lostMs - this.lostMs > WORTH_SAYING_LOST_MS) {
      this.gapMs = status.lostMs - this.lostMs;
      this.gapUntilMs = now + CAUGHT_UP_MS;
      this.hadTrouble = false; // that nothing was lost would not be true
    }
    this.lostMs = status.lostMs;
    if (this.hadTrouble) {
      this.hadTrouble = false;
      this.caughtUpUntilMs = now + CAUGHT_UP_MS;
    }
    if (now < this.gapUntilMs) {
      return [`${formatLength(this.gapMs)} could not be heard. The captions show the gap.`, "warning"];
    }
    if (now < this.caughtUpUntilMs) {
      if (status.droppedMs === 0) return ["Caught up. Nothing was lost.", ""];
      return [`Caught up. ${formatLength(status.droppedMs)} were too much to keep and are missing.`, "warning"];
    }
    if (status.behindMs > WORTH_SAYING_BEHIND_MS) {
      return [`Captions are ${formatLength(status.behindMs)} behind the voice. They catch up by themselves.`, ""];
    }
    return ["", ""];
  }
}

function reconnectingSentence(kept, reason) {
  if (reason === "") return `Reconnecting. Nothing is lost: ${kept} kept here.`;
  return `${reason} This page tries again by itself. Nothing is lost: ${kept} kept here.`;
}

/** Refusals that pass, and whose own words do not say what to do. */
const PASSING = new Set(["overloaded", "not_admitted", "later"]);

/** Why nothing was started, and what happens next. */
export function refusedSentence({ code, reason }) {
  // Its own words are for a capture that runs: that one goes on by itself.
  const why = code === "try_later" ? "The server is too busy to start now." : reason;
  if (code !== "try_later" && !PASSING.has(code)) return reason;
  return `${why} Nothing was recorded, nor what you said meanwhile. Press Try again in a minute.`;
}

/**
 * What the speaker is told of the captions on their own page: those that stand still must say so.
 * Nothing where the strip of the capture says it already.
 */
export function columnNotice({ phase, needsLogin, reason }, capture) {
  const isSaid = capture?.phase === "reconnecting" || capture?.phase === "stalled";
  if (isSaid || (phase !== "lost" && phase !== "refused")) return "";
  if (needsLogin) return "Your log-in has ended: the captions on this page stand still. Log in again in another tab, and they go on here.";
  if (phase === "refused") return reason;
  return "The captions on this page stand still for a moment. What is missing is filled in.";
}

/**
 * What is said of a capture that was saved. `hasCaptions` is null where this page cannot know,
 * since its captions did not come to the end.
 */
export function savedSentence(lengthMs, hasCaptions) {
  const length = formatClock(lengthMs);
  if (hasCaptions) return `${length} of captions.`;
  const recorded = `${length} recorded.`;
  return hasCaptions === null ? recorded : `${recorded} No words were heard in it, so there are no captions.`;
}

/** Only what changed is written, so that a screen reader repeats nothing. */
function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}
