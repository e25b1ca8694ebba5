/**
 * The capture page: before (device, level, choices), during (state, captions, share), after.
 *
 * Opens what is to be heard and shows how things stand; audio, socket and what is kept belong to the
 * Worker, since a hidden tab throttles this page.
 */

import { socketAddress } from "./addresses.js";
import { CaptionsPanel } from "./captions-panel.js";
import { CaptureWords, columnNotice, refusedSentence, savedSentence } from "./capture-words.js";
import { msOfSamples } from "./clock.js";
import { Hearing } from "./hearing.js";
import { Journal } from "./journal.js";
import { LanguageChoice } from "./language-choice.js";
import { LatencyChoice } from "./latency-choice.js";
import { hearingObstacle, isMicrophoneAllowed } from "./microphone.js";
import { Preferences } from "./preferences.js";
import { show } from "./reader-words.js";
import { KeptAwake } from "./wake-lock.js";

const RECORDING_EVERY_MS = 2000;
/** The audio thread says when its last block is out; if it is dead, the Worker is told without it. */
const END_TIMEOUT_MS = 500;

const root = document.getElementById("live");
const find = (selector) => root.querySelector(selector);
const before = find(".capture-before");
const during = find(".capture-during");
const after = find(".capture-after");
const form = find("#capture-form");

const hearing = new Hearing(root);
const preferences = new Preferences(root);
const awake = new KeptAwake();
const words = new CaptureWords(during);
const latency = new LatencyChoice(find("#latency"), (modeMs) => {
  worker.postMessage({ type: "mode", modeMs });
});
const language = new LanguageChoice(find("#language"), (code) => {
  worker.postMessage({ type: "language", language: code });
});

let live = JSON.parse(document.getElementById("live-session")?.textContent ?? "null");
let worker = null;
let panel = null;
let status = null;
/** The session left no recording. */
let isNothingHeard = false;

// Views --------------------------------------------------------------------------------------------

function showView(name) {
  root.dataset.view = name;
  before.hidden = name !== "before";
  during.hidden = name !== "during";
  after.hidden = name !== "after";
  document.body.classList.toggle("is-capturing", name === "during");
}

function showObstacle(sentence, act = null) {
  const strip = find(".capture-obstacle");
  strip.hidden = sentence === "";
  strip.querySelector("p").textContent = sentence;
  strip.querySelector("button")?.remove();
  if (act !== null) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button";
    button.textContent = act.words;
    button.addEventListener("click", act.run);
    strip.append(button);
  }
  if (sentence !== "") strip.scrollIntoView({ block: "nearest" });
}

function isCapturing() {
  return worker !== null;
}

// What is heard ------------------------------------------------------------------------------------

async function tryMicrophone() {
  const sentence = await hearing.openMicrophone();
  find("#test-microphone").hidden = sentence === "";
  if (sentence !== "") showObstacle(sentence);
}

hearing.addEventListener("trouble", ({ detail: { sentence, act } }) => {
  if (isCapturing()) words.showTrouble(sentence, act);
  else showObstacle(sentence);
});
hearing.addEventListener("want", () => worker.postMessage({ type: "pause" }));
hearing.addEventListener("heard", () => worker.postMessage({ type: "resume" }));
hearing.addEventListener("road", ({ detail: { audioPort } }) => {
  worker.postMessage({ type: "audio", audioPort }, [audioPort]);
});

// Starting -----------------------------------------------------------------------------------------

async function createSession() {
  const answer = await fetch(form.action, {
    method: "POST",
    headers: { Accept: "application/json" },
    body: new FormData(form),
  });
  if (answer.redirected) throw new Error("Your log-in has ended. Load the page again to log in.");
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.problems?.join(" ") ?? "The server refused this session.");
  return body;
}

async function start(isTakingOver = false) {
  showObstacle("");
  const sentence = await hearing.open();
  if (sentence !== "") {
    showObstacle(sentence);
    return;
  }
  await hearing.wake();
  // From here on every word is kept, though there may be no session yet.
  const audioPort = hearing.takeRoad();
  try {
    live ??= await createSession();
  } catch (error) {
    hearing.leaveRoad();
    showObstacle(error instanceof TypeError ? "The server does not answer. Try again in a moment." : error.message);
    return;
  }
  history.replaceState(null, "", live.capture_page);
  startCapture(audioPort, isTakingOver);
}

function startCapture(audioPort, isTakingOver = false) {
  hearing.isCapturing = true;
  worker = new Worker(root.dataset.worker, { type: "module" });
  worker.onmessage = ({ data }) => HEARD[data.type](data);
  worker.postMessage(
    {
      type: "start",
      session: live.session,
      address: socketAddress(live.capture_socket),
      isTakingOver,
      audioPort,
    },
    audioPort ? [audioPort] : [],
  );
  showSession();
  showView("during");
  during.focus(); // the button that was pressed is gone
  awake.start();
}

function showSession() {
  root.dataset.captionsSocket = live.captions_socket;
  root.dataset.status = live.status;
  root.dataset.language = live.language;
  document.title = `${live.title} · Capture`;
  find(".capture-title").textContent = live.title;
  const link = find(".share-address a");
  link.href = live.share_address;
  link.textContent = live.share_address.replace(/^https?:\/\//, "");
  find(".share-code").src = live.code;
  find(".share-links").href = live.links_page;
  find(".share-note").textContent = live.is_loopback
    ? "This address works on this computer only, since the page was opened under its local name."
    : "Anybody who may read these captions opens this address, or points a telephone at the code.";
  panel ??= new CaptionsPanel(during, preferences, root.dataset);
  panel.addEventListener("readers", ({ detail: { count } }) => {
    find(".share-readers").textContent = count === 1 ? "1 person reads along." : `${count} people read along.`;
  });
  panel.addEventListener("update", drawColumn);
  drawColumn();
}

function drawColumn() {
  show(during.querySelector(".captions-notice"), columnNotice(panel.connection, status));
  const empty = during.querySelector(".captions-empty");
  empty.hidden = !panel.isEmpty;
  empty.querySelector("p").textContent = "Speak. Captions appear here as others see them.";
}

/** Go on with a capture that a reload or a crash interrupted. */
async function resume(isStopped) {
  startCapture(null);
  if (!isStopped) await hearing.resume();
}

// What the Worker says -----------------------------------------------------------------------------

const HEARD = {
  status(report) {
    const isNews = status?.phase !== report.phase;
    status = report;
    words.show(report);
    if (isNews) drawColumn();
  },
  mode(report) {
    latency.show(report);
  },
  language(report) {
    language.show(report);
  },
  refused({ code, reason }) {
    endCapture();
    if (code === "session_ended" || code === "ended") {
      showAfter("Ended", reason);
      return;
    }
    showRefused();
    const takeOver = { words: "Take over here", run: () => start(true) };
    showObstacle(refusedSentence({ code, reason }), code === "in_use" || code === "in_use_here" ? takeOver : null);
  },
  finishing() {
    endCapture();
    showAfter("Saved, finishing", "The transcript is being completed. You may leave this page.");
  },
  closed() {
    endCapture();
    showAfter("Saved", savedWords());
    // The last words may come to the column after the end came here.
    panel.addEventListener("update", () => {
      if (!isNothingHeard) show(find(".after-words"), savedWords());
    });
  },
};

function savedWords() {
  if (status === null) return "";
  const hasCaptions = panel.store.entries.some(({ kind, text }) => kind === "final" && text !== "");
  const isOpen = panel.connection.phase === "open" && !panel.store.isMissingChanges;
  const isComplete = panel.status.state === "ended" && isOpen;
  return savedSentence(msOfSamples(status.sample), hasCaptions || (isComplete ? false : null));
}

/** The session stands, its choices are made: only what is heard may be chosen again. */
function showRefused() {
  find("#capture-title").textContent = live.title;
  find(".capture-choices").hidden = true;
  find("#start .button-words").textContent = "Try again";
  find("#test-microphone").hidden = false;
  showView("before");
}

function endCapture() {
  worker?.terminate();
  worker = null;
  hearing.close();
  awake.stop();
}

async function showAfter(title, sentence) {
  find(".after-title").textContent = title;
  find(".after-words").textContent = sentence;
  showView("after");
  after.focus();
  for (;;) {
    const answer = await fetch(live.status, { cache: "no-store" }).catch(() => null);
    const { recording, state } = answer?.ok ? await answer.json() : {};
    if (recording) {
      find("#open-recording").href = recording;
      find("#open-recording").hidden = false;
      if (title === "Saved, finishing") {
        find(".after-title").textContent = "Saved";
        show(find(".after-words"), savedWords());
      }
      return;
    }
    if (state === "ended") {
      isNothingHeard = true;
      show(find(".after-words"), "Nothing was heard, so there is no recording.");
      return;
    }
    await new Promise((done) => setTimeout(done, RECORDING_EVERY_MS));
  }
}

// Acts ---------------------------------------------------------------------------------------------

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const button = find("#start");
  if (button.disabled) return;
  button.disabled = true;
  start().finally(() => (button.disabled = false));
});

find("#pause").addEventListener("click", () => {
  hearing.forgetWant();
  worker.postMessage({ type: status?.isPaused ? "resume" : "pause" });
});

find("#stop").addEventListener("click", () => {
  hearing.end();
  const current = worker;
  setTimeout(() => current.postMessage({ type: "stop" }), END_TIMEOUT_MS);
});

find("#mend").addEventListener("click", (event) => hearing.mend(event.currentTarget.dataset.act));

find("#test-microphone").addEventListener("click", () => {
  showObstacle("");
  tryMicrophone();
});

find("#copy-address").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(live.share_address);
    find("#copied").textContent = "The address is copied.";
  } catch {
    find("#copied").textContent = "The browser does not allow copying; select the address instead.";
  }
});

window.addEventListener("beforeunload", (event) => {
  if (isCapturing()) event.preventDefault();
});

async function begin() {
  const obstacle = hearingObstacle();
  if (obstacle !== "") {
    showObstacle(obstacle);
    find("#start").disabled = true;
    return;
  }
  const journal = live === null ? null : await Journal.open().catch(() => null);
  const stored = (await journal?.load(live.session)) ?? null;
  if (stored !== null) {
    await resume(stored.state.isStopped);
    return;
  }
  if (await isMicrophoneAllowed()) await tryMicrophone();
  else find("#test-microphone").hidden = false;
}

begin();
