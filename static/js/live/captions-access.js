/** How a reader's page opens its socket: by the log-in, or by the link in the page's address. */

/** The token of a link (`/s/<token>/…`), or "" on a page of somebody who is logged in. */
export function linkToken(path = location.pathname) {
  return /^\/s\/([\w-]+)\//.exec(path)?.[1] ?? "";
}

/** The first message of a socket that was opened by a link. */
export function linkMessage(token) {
  return JSON.stringify({ type: "link", token });
}
