/** What readers are told of a session, the same on the captions page and on a room's screen. */

const STATES = {
  created: "Not started yet",
  live: "Live",
  paused: "Paused",
  waiting: "Speaker away",
  ending: "Finishing",
  ended: "Ended",
};

const NOTICES = {
  paused: "The speaker has paused. Captions go on when they continue.",
  waiting: "The speaker's connection is lost. Captions go on when they return.",
};

/** Puts words into an element, which is hidden while there are none. */
export function show(element, words) {
  if (element.textContent !== words) element.textContent = words;
  element.hidden = words === "";
}

export function drawState(badge, { status, connection }) {
  const { phase } = connection;
  const isAway = phase === "lost" || phase === "refused";
  badge.dataset.state = isAway ? "lost" : status.state;
  const away = phase === "lost" ? "Reconnecting" : "Closed";
  show(badge.querySelector(".live-state-words"), isAway ? away : (STATES[status.state] ?? ""));
}

export function noticeWords({ status, connection }) {
  const { phase, reason, needsLogin } = connection;
  if (needsLogin) return "Your log-in has ended. Log in again in another tab, and captions go on here.";
  if (phase === "refused") return reason;
  if (phase === "lost") return reason || "Reconnecting. What you miss is filled in.";
  return NOTICES[status.state] ?? "";
}

export function emptyWords({ status }) {
  if (status.state === "created") {
    return "The speaker has not started yet. Captions appear here by themselves.";
  }
  if (status.state === "ending" || status.state === "ended") return "Nothing was said in this session.";
  return "Captions appear here as soon as somebody speaks.";
}

export function toggleFullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.();
}
