/** The captions page: a reader's view of one live session. */

import { CaptionsPanel } from "./captions-panel.js";
import { Preferences } from "./preferences.js";
import { drawState, emptyWords, noticeWords, show, toggleFullScreen } from "./reader-words.js";
import { formatClock } from "../times.js";

const root = document.getElementById("live");
const preferences = new Preferences(root);
const panel = new CaptionsPanel(root, preferences, root.dataset);

const stateBadge = root.querySelector(".live-state");
const elapsed = root.querySelector(".live-elapsed");
const notice = root.querySelector(".captions-notice");
const empty = root.querySelector(".captions-empty");
const ended = root.querySelector(".captions-ended");
const title = root.querySelector(".live-title");
const microphone = root.querySelector("[data-microphone]");

function draw() {
  const { state, recording } = panel.status;
  drawState(stateBadge, panel);
  show(notice, noticeWords(panel));
  empty.hidden = !panel.isEmpty;
  show(empty.querySelector("p"), emptyWords(panel));
  const isOver = state === "ended" || state === "ending";
  ended.hidden = !isOver;
  if (microphone !== null) microphone.hidden = isOver;
  const link = ended.querySelector("a");
  link.hidden = !recording;
  if (recording) link.href = recording;
  drawElapsed();
}

function drawElapsed() {
  const last = panel.status.clock.at(-1);
  const isRunning = panel.status.state === "live" && panel.connection.phase === "open" && last;
  show(elapsed, isRunning ? formatClock(last[0] + Date.now() - last[1]) : "");
}

async function copy(button) {
  const words = button.querySelector(".button-words");
  const before = words.textContent;
  try {
    await navigator.clipboard.writeText(panel.copyText());
    words.textContent = "Copied";
  } catch {
    words.textContent = "Not allowed";
  }
  setTimeout(() => (words.textContent = before), 2000);
}

const ACTS = {
  copy: (button) => copy(button),
  fullscreen: toggleFullScreen,
};

root.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (button !== null) ACTS[button.dataset.act](button);
});

const KEYS = {
  c: () => copy(root.querySelector('[data-act="copy"]')),
  f: toggleFullScreen,
  "+": () => preferences.resize(1),
  "=": () => preferences.resize(1),
  "-": () => preferences.resize(-1),
  l: () => panel.view.backToLive(),
  r: () => root.querySelector("[data-room]").click(),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, select, textarea") || document.querySelector("dialog[open]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  KEYS[event.key]?.();
});

document.addEventListener("fullscreenchange", () => {
  const isFull = document.fullscreenElement !== null;
  root.querySelector('[data-act="fullscreen"]').setAttribute("aria-pressed", String(isFull));
});

panel.addEventListener("update", draw);
panel.addEventListener("title", ({ detail }) => {
  title.textContent = detail.title;
  document.title = `${detail.title} · Captions`;
});
setInterval(drawElapsed, 1000);
draw();
