/** Times as people read them. Positions are milliseconds on a recording's or a session's clock. */

/** `12:43`, `1:02:03`, as the `clock` filter writes it. */
export function formatClock(ms) {
  const total = Math.max(0, Math.floor(ms / 1000));
  const seconds = String(total % 60).padStart(2, "0");
  const minutes = Math.floor(total / 60) % 60;
  const hours = Math.floor(total / 3600);
  return hours > 0
    ? `${hours}:${String(minutes).padStart(2, "0")}:${seconds}`
    : `${minutes}:${seconds}`;
}

/** `14 s`, `2 min 5 s`: a length in words. */
export function formatLength(ms) {
  const total = Math.max(1, Math.round(ms / 1000));
  const minutes = Math.floor(total / 60);
  if (minutes === 0) return `${total} s`;
  return total % 60 === 0 ? `${minutes} min` : `${minutes} min ${total % 60} s`;
}

const formatsByZone = new Map();

function timeOfDayIn(timeZone) {
  const shape = { hour: "numeric", minute: "2-digit" };
  try {
    return new Intl.DateTimeFormat(undefined, { ...shape, timeZone: timeZone || undefined });
  } catch {
    return new Intl.DateTimeFormat(undefined, shape); // a zone that this browser does not know
  }
}

/** `3:41 PM`, as the browser's language writes it; `timeZone` "" is the browser's. */
export function formatTimeOfDay(wallMs, timeZone = "") {
  if (!formatsByZone.has(timeZone)) formatsByZone.set(timeZone, timeOfDayIn(timeZone));
  return formatsByZone.get(timeZone).format(wallMs);
}

/**
 * Wall time of a position, or null where it is not known. `pairs` are [position ms, wall ms] in
 * ascending order: a pause lets the wall clock run on, so the last pair at or before it counts.
 */
export function wallTimeOf(positionMs, pairs) {
  if (pairs.length === 0) return null;
  let [at, wallMs] = pairs[0];
  for (const [pairMs, pairWallMs] of pairs) {
    if (pairMs > positionMs) break;
    [at, wallMs] = [pairMs, pairWallMs];
  }
  return wallMs + (positionMs - at);
}
