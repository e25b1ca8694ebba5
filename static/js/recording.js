// The page of a recording: player with waveform, the spoken word, and progress while it is written.

import { connectionBack, connectionLost, isTyping } from "./site.js";
import { formatClock } from "./times.js";

const page = document.getElementById("recording");
const audio = document.getElementById("audio");
const player = document.getElementById("player");
const wave = document.getElementById("wave");
const canvas = document.getElementById("wave-canvas");
const transcript = document.getElementById("transcript");
const column = transcript.parentElement; // The tail, draft text after the refined, is replaced in it.
let durationMs = Number(page.dataset.durationMs);
const STEP_MS = 5000;
const LEAP_MS = 30_000;

// Player -------------------------------------------------------------------------------------------

function positionMs() {
  return audio.currentTime * 1000;
}

function seek(ms) {
  audio.currentTime = Math.min(Math.max(0, ms), durationMs) / 1000;
  showPosition();
}

function playFrom(ms) {
  seek(ms);
  audio.play().catch(() => {});
}

function toggle() {
  if (audio.paused) audio.play().catch(() => {});
  else audio.pause();
}

player.addEventListener("click", (event) => {
  const act = event.target instanceof Element ? event.target.closest("[data-player]")?.dataset.player : "";
  if (act === "play") toggle();
  if (act === "back") seek(positionMs() - STEP_MS);
});
document.getElementById("speed").addEventListener("change", (event) => {
  audio.playbackRate = Number(event.target.value);
  audio.defaultPlaybackRate = audio.playbackRate; // Another sound begins with this one.
});
// A sound that gives way to another is "emptied": of its pause there is no word.
for (const name of ["play", "pause", "ended", "emptied"]) {
  audio.addEventListener(name, () => {
    player.classList.toggle("is-playing", !audio.paused);
    if (!audio.paused) requestAnimationFrame(follow);
  });
}
audio.addEventListener("error", () => { document.getElementById("player-problem").hidden = false; });
audio.addEventListener("seeked", showPosition);
audio.addEventListener("timeupdate", showPosition); // A hidden tab has no animation frames.

function follow() {
  showPosition();
  if (!audio.paused) requestAnimationFrame(follow);
}

let sound = statusElement()?.dataset.sound;

/** Play what the transcript is of now, from where the reader is, once they ask for it. */
function followSound() {
  const { sound: current, durationMs: lengthMs, language } = statusElement().dataset;
  transcript.lang = language;
  if (current === sound || !audio.src) return;
  sound = current;
  durationMs = Number(lengthMs);
  const atMs = positionMs();
  const address = new URL(audio.src);
  address.searchParams.set("sound", sound); // The browser may hold the old sound under the old name.
  audio.pause();
  audio.src = address;
  document.getElementById("player-problem").hidden = true;
  for (const length of document.querySelectorAll("#player-length, .recording-head .row-facts .figures")) {
    length.textContent = formatClock(durationMs);
  }
  wave.setAttribute("aria-valuemax", String(durationMs));
  seek(atMs);
  loadPeaks();
}

// Waveform -----------------------------------------------------------------------------------------

let peaks = [];

async function loadPeaks() {
  // Where the audio is no longer kept there is no waveform either.
  const answer = page.dataset.peaks ? await fetch(page.dataset.peaks).catch(() => null) : null;
  if (answer?.ok) {
    const body = await answer.json();
    peaks = Array.isArray(body) ? body : body.peaks;
  }
  draw();
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(wave.clientWidth * ratio);
  const height = Math.round(wave.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const style = getComputedStyle(wave);
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, width, height);
  const bar = Math.max(2, Math.round(2 * ratio));
  const step = bar + Math.max(1, Math.round(ratio));
  const count = Math.floor(width / step);
  const done = durationMs ? positionMs() / durationMs : 0;
  for (let index = 0; index < count; index += 1) {
    const from = Math.floor((index / count) * peaks.length);
    const to = Math.max(from + 1, Math.floor(((index + 1) / count) * peaks.length));
    const peak = peaks.length ? Math.max(...peaks.slice(from, to)) / 100 : 0;
    const tall = Math.max(bar, peak * height * 0.92);
    pen.fillStyle = (index + 0.5) / count <= done ? style.getPropertyValue("--wave-done") : style.getPropertyValue("--wave-rest");
    pen.beginPath();
    pen.roundRect(index * step, (height - tall) / 2, bar, tall, bar / 2);
    pen.fill();
  }
}

function seekTo(event) {
  const box = wave.getBoundingClientRect();
  seek(((event.clientX - box.left) / box.width) * durationMs);
}

wave.addEventListener("pointerdown", (event) => {
  wave.setPointerCapture(event.pointerId);
  seekTo(event);
});
wave.addEventListener("pointermove", (event) => { if (wave.hasPointerCapture(event.pointerId)) seekTo(event); });
new ResizeObserver(draw).observe(wave);
wave.addEventListener("keydown", (event) => {
  const places = {
    Home: 0,
    End: durationMs,
    PageUp: positionMs() + LEAP_MS,
    PageDown: positionMs() - LEAP_MS,
    ArrowUp: positionMs() + STEP_MS,
    ArrowDown: positionMs() - STEP_MS,
  };
  if (isTyping(event) || !(event.key in places)) return;
  event.preventDefault();
  seek(places[event.key]);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });

// The spoken line and word -------------------------------------------------------------------------

let lines = [];
let spoken = null;
let readerMovedAt = 0;
const highlight = "highlights" in CSS ? new Highlight() : null;
if (highlight) CSS.highlights.set("spoken-word", highlight);

function collectLines() {
  lines = [...column.querySelectorAll(".line")].map((element) => ({
    element,
    startMs: Number(element.dataset.start),
    endMs: Number(element.dataset.end),
    words: null,
  }));
  spoken = null;
}

function wordsOf(line) {
  line.words ??= line.element.dataset.words.split(" ").filter(Boolean).map((entry) => {
    const [startMs, offset, length] = entry.split(":").map(Number);
    return { startMs: line.startMs + startMs, offset, length };
  });
  return line.words;
}

/** Index of the last entry that has begun at `ms`, or -1. */
function lastBegun(entries, ms) {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle].startMs <= ms) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** A place in the text of `element` counted over its text nodes. */
function textPlace(element, offset) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (offset <= node.length) return [node, offset];
    offset -= node.length;
  }
  return null;
}

function showPosition() {
  const ms = positionMs();
  document.getElementById("player-at").textContent = formatClock(ms);
  wave.setAttribute("aria-valuenow", String(Math.round(ms)));
  wave.setAttribute("aria-valuetext", formatClock(ms));
  draw();
  const found = lines[lastBegun(lines, ms)];
  const isInside = found && ms < found.endMs + 300 && (ms > 0 || !audio.paused);
  const line = isInside ? found : null;
  if (line !== spoken) {
    spoken?.element.classList.remove("is-spoken");
    line?.element.classList.add("is-spoken");
    spoken = line;
    if (line && !audio.paused) keepInView(line.element);
  }
  if (highlight) {
    highlight.clear();
    const words = line ? wordsOf(line) : [];
    const word = words[lastBegun(words, ms)];
    const from = word && textPlace(line.element, word.offset + 1);
    const to = word && textPlace(line.element, word.offset + word.length);
    if (from && to) {
      const range = new Range();
      range.setStart(from[0], from[1] - 1);
      range.setEnd(...to);
      highlight.add(range);
    }
  }
}

function keepInView(element) {
  if (performance.now() - readerMovedAt < 4000) return;
  const box = element.getBoundingClientRect();
  if (box.top < 140 || box.bottom > window.innerHeight - 80) {
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    element.scrollIntoView({ block: "center", behavior: isCalm ? "auto" : "smooth" });
  }
}

for (const name of ["wheel", "touchmove"]) {
  window.addEventListener(name, () => { readerMovedAt = performance.now(); }, { passive: true });
}

/** The word under the pointer begins here, or else its line. */
function startAt(event, line) {
  const place = document.caretPositionFromPoint?.(event.clientX, event.clientY);
  const range = place ? null : document.caretRangeFromPoint?.(event.clientX, event.clientY);
  const node = place?.offsetNode ?? range?.startContainer;
  if (!node || !line.element.contains(node)) return line.startMs;
  const before = new Range();
  before.selectNodeContents(line.element);
  before.setEnd(node, place?.offset ?? range.startOffset);
  const offset = before.toString().length;
  const word = wordsOf(line).findLast((entry) => entry.offset <= offset);
  return word?.startMs ?? line.startMs;
}

column.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : event.target.parentElement;
  const time = target.closest(".paragraph-time");
  if (time) {
    playFrom(Number(time.dataset.start));
    return;
  }
  if (!getSelection().isCollapsed) return; // The person selects text to copy it.
  const element = target.closest(".line");
  const line = element && lines.find((entry) => entry.element === element);
  if (line) playFrom(startAt(event, line));
});

// Keys ---------------------------------------------------------------------------------------------

function stepLine(by) {
  const here = lastBegun(lines, positionMs() + 50);
  const line = lines[Math.min(Math.max(0, here + by), lines.length - 1)];
  if (line) {
    seek(line.startMs);
    readerMovedAt = 0;
    keepInView(line.element);
  }
}

document.addEventListener("keydown", (event) => {
  if (isTyping(event)) return;
  const isButton = event.target instanceof Element && event.target.closest("button, a, summary");
  const acts = {
    " ": () => toggle(),
    ArrowLeft: () => seek(positionMs() - STEP_MS),
    ArrowRight: () => seek(positionMs() + STEP_MS),
    j: () => stepLine(1),
    k: () => stepLine(-1),
  };
  const act = acts[event.key];
  if (!act || (event.key === " " && isButton)) return;
  event.preventDefault();
  act();
});

// Progress -----------------------------------------------------------------------------------------

const POLL_MS = 4000; // Without a socket.
const CALM_MS = 20000; // With one: a message may be lost.
let socket = null;
let socketTries = 0;
let lastFetchAt = 0;

function statusElement() {
  return document.getElementById("status");
}

function isOpen() {
  return statusElement()?.dataset.open === "yes";
}

function refresh() {
  if (!statusElement()) return; // Behind a link there is no news.
  lastFetchAt = performance.now();
  htmx.trigger(statusElement(), "changed");
  growTranscript();
}

/**
 * Append the segments that are new, and put the tail that is there now in the place of the old one;
 * the server answers with all segments if the revision is another.
 */
function growTranscript() {
  const address = new URL(transcript.dataset.url, location.origin);
  const { revision, tail } = document.getElementById("transcript-tail").dataset;
  const last = transcript.querySelector(".paragraph:last-child .line:last-child");
  if (revision) address.searchParams.set("revision", revision);
  if (last) address.searchParams.set("after", last.dataset.index);
  address.searchParams.set("tail", tail);
  return htmx.ajax("GET", address.pathname + address.search, { target: transcript, swap: "innerHTML" });
}

transcript.addEventListener("htmx:afterSwap", () => {
  collectLines();
  showPosition();
});

// The last change of state brings the rest of the text, so one more fetch follows it.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id !== "status") return;
  followSound();
  watch();
});

// Deleted, or no longer shared: there is nothing more to ask for.
document.addEventListener("htmx:responseError", (event) => {
  if (event.target.id === "status" && event.detail.xhr.status === 404) event.target.dataset.open = "";
});

function watch() {
  if (!isOpen()) {
    growTranscript();
    return;
  }
  if (socket) return;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/ws/v1/recordings/${page.dataset.recording}`);
  socket.addEventListener("open", () => {
    if (socketTries > 0) {
      connectionBack();
      refresh();
    }
    socketTries = 0;
  });
  socket.addEventListener("message", refresh);
  socket.addEventListener("close", (event) => {
    socket = null;
    if (event.code === 4404 || event.code === 4401) {
      refresh();
      return;
    }
    socketTries += 1;
    if (socketTries === 3 && !navigator.onLine) connectionLost();
    setTimeout(watch, Math.min(15000, 500 * 2 ** socketTries));
  });
}

setInterval(() => {
  const every = socket?.readyState === WebSocket.OPEN ? CALM_MS : POLL_MS;
  const mayChange = isOpen() || statusElement()?.dataset.follows === "yes";
  if (mayChange && performance.now() - lastFetchAt > every) refresh();
}, 1000);
document.addEventListener("connection:back", refresh);

collectLines();
loadPeaks();
showPosition();
if (isOpen()) watch();
