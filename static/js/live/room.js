/** The room view: a few large lines on the screen of a room, or over a broadcast. */

import { CaptionsPanel } from "./captions-panel.js";
import { Preferences, ROOM } from "./preferences.js";
import { drawState, emptyWords, noticeWords, show, toggleFullScreen } from "./reader-words.js";
import { RoomView } from "./room-view.js";
import { KeptAwake } from "./wake-lock.js";

/** Pointer and tools go when nobody has touched anything for so long. */
const IDLE_MS = 3000;
/** Over a broadcast, words that nobody follows up go. */
const STALE_MS = 12_000;

const root = document.getElementById("room");
const isTransparent = document.body.classList.contains("is-transparent");
const preferences = new Preferences(root, ROOM);
const panel = new CaptionsPanel(root, preferences, root.dataset, RoomView);

const badge = root.querySelector(".live-state");
const title = root.querySelector(".room-title");
const words = root.querySelector(".room-empty");

new KeptAwake().start();

// How things stand ---------------------------------------------------------------------------------

function roomWords() {
  const { state } = panel.status;
  const notice = noticeWords(panel);
  if (notice !== "") return notice;
  if (panel.isEmpty) return emptyWords(panel);
  return state === "ended" ? "The session has ended." : "";
}

function draw() {
  drawState(badge, panel);
  if (!isTransparent) show(words, roomWords());
}

let staleTimer = 0;

function drawFresh() {
  root.classList.remove("is-stale");
  clearTimeout(staleTimer);
  staleTimer = setTimeout(() => root.classList.add("is-stale"), STALE_MS);
}

panel.addEventListener("update", draw);
if (isTransparent) {
  panel.socket.addEventListener("change", ({ detail }) => {
    if (detail.kind !== "replace") drawFresh(); // refined words are no new ones
  });
}
panel.addEventListener("title", ({ detail }) => {
  title.textContent = detail.title;
  document.title = `${detail.title} · Room`;
});

// Pointer, tools and keys --------------------------------------------------------------------------

let idleTimer = 0;

function wake() {
  document.body.classList.remove("is-idle");
  clearTimeout(idleTimer);
  idleTimer = setTimeout(() => document.body.classList.add("is-idle"), IDLE_MS);
}

const KEYS = {
  f: toggleFullScreen,
  d: () => preferences.set("ground", preferences.values.ground === "dark" ? "light" : "dark"),
  "+": () => preferences.resize(1),
  "=": () => preferences.resize(1),
  "-": () => preferences.resize(-1),
};

document.addEventListener("keydown", (event) => {
  const isElsewhere = event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]");
  if (!isElsewhere) KEYS[event.key.toLowerCase()]?.();
});
for (const name of ["pointermove", "pointerdown", "focusin"]) document.addEventListener(name, wake);

root.querySelector('[data-act="fullscreen"]').addEventListener("click", toggleFullScreen);
document.addEventListener("fullscreenchange", () => {
  const isFull = document.fullscreenElement !== null;
  root.querySelector('[data-act="fullscreen"]').setAttribute("aria-pressed", String(isFull));
});

wake();
draw();
