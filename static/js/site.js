// What every page does: theme, time zone, menus, dialogs, keys, fresh relative times, and saying
// when the connection is lost and when it is back.

import { forgetEverything, forgetWhatIsOld } from "./live/journal.js";
import { formatClock } from "./times.js";

const YEAR_S = 365 * 24 * 3600;
const FORGET_TIMEOUT_MS = 1000;

function setCookie(name, value) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  const age = value === "" ? 0 : YEAR_S;
  document.cookie = `${name}=${encodeURIComponent(value)}; Path=/; Max-Age=${age}; SameSite=Lax${secure}`;
}

// The server reads both cookies: the first page after a change already looks right.
function rememberTimeZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone) document.cookie = `time_zone=${zone}; Path=/; Max-Age=${YEAR_S}; SameSite=Lax`;
}

function chooseTheme(theme) {
  setCookie("theme", theme);
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme));
  }
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu !== except) menu.open = false;
  }
}

function openDialog(id) {
  const dialog = document.getElementById(id);
  if (dialog && !dialog.open) dialog.showModal();
}

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  if (!target) return;
  closeMenus(target.closest("details.menu"));
  const theme = target.closest("[data-theme-choice]");
  if (theme) chooseTheme(theme.dataset.themeChoice);
  if (target.closest("a.menu-item")) closeMenus(); // A download leaves the page as it is.
  const opener = target.closest("[data-opens]");
  if (opener) {
    event.preventDefault(); // Where no script runs, its address opens the dialog.
    closeMenus();
    // A closed dialog gives the focus back to where it was: not to an item of a closed menu.
    opener.closest("details.menu")?.querySelector("summary")?.focus();
    openDialog(opener.dataset.opens);
  }
  const closer = target.closest("[data-closes]");
  if (closer) closer.closest("dialog")?.close();
  const dismiss = target.closest("[data-dismiss]");
  if (dismiss) dismiss.closest(".strip")?.remove();
  if (target instanceof HTMLDialogElement && event.target === target) {
    const box = target.getBoundingClientRect();
    const inside = event.clientX >= box.left && event.clientX <= box.right &&
      event.clientY >= box.top && event.clientY <= box.bottom;
    if (!inside) target.close();
  }
});

/** True where a key belongs to what is being typed or chosen. */
export function isTyping(event) {
  const target = event.target;
  return event.ctrlKey || event.metaKey || event.altKey ||
    (target instanceof HTMLElement && target.matches("input, select, textarea, [contenteditable]")) ||
    document.querySelector("dialog[open]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const open = document.querySelector("details.menu[open]");
    if (open) {
      open.open = false;
      open.querySelector("summary")?.focus();
    }
    return;
  }
  if (isTyping(event)) return;
  if (event.key === "?") {
    event.preventDefault();
    openDialog("keys");
  } else if (event.key === "/") {
    const search = document.getElementById("search");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  }
});

// A form that changes a setting at once needs no button where script runs.
document.addEventListener("change", (event) => {
  const field = event.target;
  if (field instanceof HTMLElement && field.hasAttribute("data-submits")) field.form?.requestSubmit();
});

// What a capture kept in this browser goes with the person who spoke.
document.addEventListener("submit", async (event) => {
  if (!event.target.matches('form[action$="/accounts/logout/"]')) return;
  event.preventDefault();
  await Promise.race([forgetEverything(), new Promise((done) => setTimeout(done, FORGET_TIMEOUT_MS))]);
  event.target.submit();
});

// Times --------------------------------------------------------------------------------------------

/** The words of `relative_time` in templatetags/ui.py; older times do not change while one reads. */
function relativeTime(ageS) {
  if (ageS < 60) return "just now";
  if (ageS < 3600) return `${Math.floor(ageS / 60)} min ago`;
  return `${Math.floor(ageS / 3600)} h ago`;
}

function refreshTimes() {
  for (const element of document.querySelectorAll("time[data-relative]")) {
    const ageS = (Date.now() - Date.parse(element.dateTime)) / 1000;
    if (ageS >= 24 * 3600) continue;
    const words = relativeTime(ageS);
    if (element.textContent !== words) element.textContent = words;
  }
  for (const element of document.querySelectorAll("[data-running-since]")) {
    const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(element.dataset.runningSince)) / 1000));
    element.textContent = formatClock(seconds * 1000);
  }
}

// Connection ---------------------------------------------------------------------------------------

let isLost = false;
let hideTimer = 0;

/** Say that the server cannot be reached. Pages call it when a socket or a request fails. */
export function connectionLost() {
  if (isLost) return;
  isLost = true;
  clearTimeout(hideTimer);
  showConnection("strip-warning", "The connection is lost. Nothing is lost here; this page goes on by itself.");
}

/** Say, once, that it is back, and let the page fetch what it missed. */
export function connectionBack() {
  if (!isLost) return;
  isLost = false;
  showConnection("", "Connected again. Everything is up to date.");
  hideTimer = setTimeout(() => { document.getElementById("connection").hidden = true; }, 4000);
  document.dispatchEvent(new CustomEvent("connection:back"));
}

function showConnection(tone, sentence) {
  const strip = document.getElementById("connection");
  if (!strip) return;
  strip.className = `strip connection ${tone}`;
  strip.textContent = sentence;
  strip.hidden = false;
}

async function probe() {
  if (!isLost) return;
  try {
    const answer = await fetch("/healthz", { cache: "no-store" });
    if (answer.ok) {
      connectionBack();
      return;
    }
  } catch {
    // Still away.
  }
  setTimeout(probe, 3000);
}

document.addEventListener("htmx:sendError", () => { connectionLost(); setTimeout(probe, 2000); });
document.addEventListener("htmx:timeout", () => { connectionLost(); setTimeout(probe, 2000); });
document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) connectionBack(); });
window.addEventListener("offline", connectionLost);
window.addEventListener("online", () => setTimeout(probe, 500));

// An answer that is an error holds one sentence (see pages/errors.py); it is said once.
document.addEventListener("htmx:responseError", (event) => {
  const { xhr } = event.detail;
  const isPlain = xhr.getResponseHeader("Content-Type")?.startsWith("text/plain");
  const sentence = isPlain ? xhr.responseText : "The server could not answer. Load the page again.";
  const messages = document.getElementById("messages");
  if ([...messages.querySelectorAll("p")].some((said) => said.textContent === sentence)) return;
  const strip = document.createElement("div");
  strip.className = "strip strip-warning message";
  const words = document.createElement("p");
  words.className = "grow";
  words.textContent = sentence;
  strip.append(words);
  messages.append(strip);
});

// A log-in that ran out: come back to this page after it.
document.addEventListener("htmx:beforeSwap", (event) => {
  const address = event.detail.xhr.responseURL;
  if (address && new URL(address).pathname.startsWith("/accounts/login")) {
    event.detail.shouldSwap = false;
    location.assign(`/accounts/login/?next=${encodeURIComponent(location.pathname + location.search)}`);
  }
});

// A page whose address opens a dialog has it open, but not before everything else.
for (const dialog of document.querySelectorAll("dialog[open]")) {
  dialog.close();
  dialog.showModal();
}
forgetWhatIsOld().catch(() => {}); // a private window may have no such store
rememberTimeZone();
refreshTimes();
setInterval(refreshTimes, 1000);
