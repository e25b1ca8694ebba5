// Uploads of the home page: pick or drop files, send them by tus in 8 MB pieces, show how each goes.
//
// The server's row is the truth about an upload. After a reload the list comes from the server; the
// browser gives the file again by a kept handle (Chromium) or the person chooses it once more.

import { connectionBack } from "./site.js";
import { forgetHandle, handleFor, keepHandle } from "./upload_handles.js";

const PIECE_BYTES = 8 * 1024 * 1024;
const AT_ONCE = 3;
const RETRY_DELAYS_MS = [0, 1000, 2000, 4000, 8000, ...Array(60).fill(15000)];
const NOT_SOUND = /^(image|text|font)\/|^application\/(pdf|zip|json|msword|vnd\.(ms-|openxml|oasis))/;

const section = document.getElementById("uploads");
const list = document.getElementById("upload-list");
const template = document.getElementById("upload-template");
const picker = document.getElementById("files");
const language = document.getElementById("language");
const speakers = document.getElementById("speakers");
const clear = document.getElementById("clear-uploads");
const items = new Set();

function formatSize(bytes) {
  for (const [unit, factor] of [["GB", 1024 ** 3], ["MB", 1024 ** 2], ["kB", 1024]]) {
    if (bytes >= factor) {
      const value = bytes / factor;
      return `${value < 10 ? value.toFixed(1).replace(".0", "") : Math.round(value)} ${unit}`;
    }
  }
  return `${bytes} bytes`;
}

function formatLeft(seconds) {
  if (seconds < 50) return "less than a minute left";
  if (seconds < 90 * 60) return `about ${Math.max(1, Math.round(seconds / 60))} min left`;
  return `about ${Math.round(seconds / 3600)} h left`;
}

function csrfHeaders() {
  return JSON.parse(document.body.getAttribute("hx-headers"));
}

/** A sentence if the file can be refused without sending it, else "". */
function refusalOf(file) {
  if (file.size === 0) return "This file is empty.";
  const limit = Number(section.dataset.maxBytes);
  if (file.size > limit) {
    return `This file has ${formatSize(file.size)}; the server accepts up to ${formatSize(limit)}.`;
  }
  if (NOT_SOUND.test(file.type)) return "This is neither audio nor video.";
  return "";
}

/** One file in the list, from the first byte to the recording or the refusal. */
class Item {
  constructor({ file = null, name, length, offset = 0, id = "" }) {
    Object.assign(this, { file, name, length, offset, id });
    this.tus = null;
    this.samples = [];
    this.element = template.content.firstElementChild.cloneNode(true);
    this.element.querySelector(".upload-name").textContent = name;
    this.element.querySelector(".upload-name").title = name;
    this.element.addEventListener("click", (event) => this.act(event));
    items.add(this);
  }

  part(selector) { return this.element.querySelector(selector); }

  act(event) {
    const button = event.target instanceof Element ? event.target.closest("[data-act]") : null;
    if (button?.dataset.act === "pause") this.pause();
    if (button?.dataset.act === "resume") this.resume();
    if (button?.dataset.act === "cancel") this.cancel();
  }

  /** Show `state` with its sentence; the state decides which acts there are. */
  show(state, sentence) {
    this.state = state;
    this.element.dataset.state = state;
    this.part(".upload-state").textContent = sentence;
    const bar = this.part(".bar");
    bar.hidden = state === "refused" || state === "accepted";
    bar.value = this.length ? Math.floor((this.offset / this.length) * 1000) : 0;
    this.part('[data-act="pause"]').hidden = !["sending", "away"].includes(state);
    this.part('[data-act="resume"]').hidden = state !== "paused";
    this.part('[data-act="open"]').hidden = state !== "accepted";
    const cancel = this.part('[data-act="cancel"]');
    cancel.hidden = state === "checking";
    const label = state === "refused" || state === "accepted" ? "Remove from this list" : "Cancel upload";
    cancel.querySelector(".only-heard").textContent = label;
    cancel.title = label;
    showSection();
  }

  get isDone() { return ["accepted", "refused"].includes(this.state); }

  get share() {
    return `${Math.floor((this.offset / this.length) * 100)} % of ${formatSize(this.length)}`;
  }

  wait() { this.show("waiting", `Waiting for its turn · ${formatSize(this.length)}`); }

  start() {
    this.samples = [];
    this.asked = new Promise((resolve) => { this.isAnswered = resolve; });
    this.show("sending", this.share);
    this.tus = new tus.Upload(this.file, {
      endpoint: section.dataset.endpoint,
      uploadUrl: this.id ? `${section.dataset.endpoint}${this.id}` : null,
      chunkSize: PIECE_BYTES,
      retryDelays: RETRY_DELAYS_MS,
      storeFingerprintForResuming: false,
      metadata: { filename: this.name, language: language.value, speakers: speakers?.value ?? "" },
      headers: csrfHeaders(),
      onShouldRetry: (error) => {
        const status = error.originalResponse?.getStatus() ?? 0;
        this.isAnswered();
        const goesOn = [0, 409, 423, 429].includes(status) || status >= 500 && status !== 507;
        if (goesOn && this.state !== "paused") {
          this.show("away", `${this.share} is safe on the server. It goes on by itself when the connection is back.`);
        }
        return goesOn;
      },
      onUploadUrlAvailable: () => {
        this.id = this.tus.url.split("/").filter(Boolean).pop();
        keepHandle(this.id, this.handle);
        if (this.state === "paused") this.tus.abort();
        this.isAnswered();
      },
      onProgress: (sent) => this.progress(sent),
      onSuccess: () => {
        forgetHandle(this.id);
        this.offset = this.length;
        this.check();
        startNext();
      },
      onError: (error) => {
        this.isAnswered();
        this.fail(error);
      },
    });
    this.tus.start();
  }

  progress(sent) {
    if (this.state === "away") connectionBack();
    if (this.state === "paused") return;
    this.offset = sent;
    const now = performance.now();
    this.samples = [...this.samples.filter(([at]) => now - at < 8000), [now, sent]];
    const [firstAt, firstSent] = this.samples[0];
    const speed = now - firstAt > 500 ? ((sent - firstSent) / (now - firstAt)) * 1000 : 0;
    const words = [this.share];
    if (speed > 0) words.push(`${formatSize(speed)}/s`, formatLeft((this.length - sent) / speed));
    this.show("sending", words.join(" · "));
  }

  fail(error) {
    const response = error.originalResponse;
    let sentence = "";
    try {
      sentence = JSON.parse(response.getBody()).detail;
    } catch {
      // Not an answer of our server: it is away, or something stands between.
    }
    const status = response?.getStatus() ?? 0;
    if (status === 404 && this.id) {
      this.id = "";
      this.offset = 0;
      this.show("paused", "The server no longer has this upload. It can start again.");
    } else if (status >= 400 && status < 500) {
      this.show("refused", sentence || "The server refused this file.");
    } else {
      this.show("paused", sentence || `${this.share} is safe on the server.`);
    }
    startNext();
  }

  pause() {
    // Whoever hangs up while the server makes room never learns where, and leaves it taken.
    if (this.id) this.tus?.abort();
    this.show("paused", `Paused at ${this.share}.`);
    startNext();
  }

  async resume() {
    await this.asked;
    if (!this.file) await this.fetchFile({ mayAsk: true });
    if (!this.file) {
      wanted = this;
      picker.click();
      return;
    }
    this.wait();
    startNext();
  }

  /** Get the file by the handle kept before the reload; `mayAsk` lets the browser ask for leave. */
  async fetchFile({ mayAsk }) {
    const handle = await handleFor(this.id, { mayAsk });
    const file = await handle?.getFile().catch(() => null);
    if (file && file.size === this.length) this.file = file;
  }

  async cancel() {
    if (!this.isDone) this.show("paused", "Cancelling…");
    if (!this.id) await this.asked;
    this.tus?.abort();
    if (this.id && this.state !== "accepted") {
      const answer = await fetch(`${section.dataset.endpoint}${this.id}`, {
        method: "DELETE",
        headers: { ...csrfHeaders(), "Tus-Resumable": "1.0.0" },
      }).catch(() => null);
      if (!answer || (!answer.ok && answer.status !== 404 && answer.status !== 410)) {
        this.show("paused", "The server could not be reached, so this upload is not cancelled yet.");
        return;
      }
    }
    forgetHandle(this.id);
    items.delete(this);
    this.element.remove();
    showSection();
    startNext();
  }

  /** All bytes are there: ask until the server has looked into the file. */
  async check() {
    this.show("checking", `${formatSize(this.length)} uploaded. Checking the audio…`);
    const address = section.dataset.status.replace("00000000-0000-0000-0000-000000000000", this.id);
    for (;;) {
      const answer = await fetch(address).catch(() => null);
      if (answer?.status === 404) {
        this.show("refused", "The server no longer has this upload.");
        return;
      }
      const upload = answer?.ok && !answer.redirected ? await answer.json() : null;
      if (upload?.state === "accepted") {
        this.part('[data-act="open"]').href = upload.recording;
        this.show("accepted", "Uploaded. It stands in the list below.");
        htmx.trigger("#recordings", "refresh");
        return;
      }
      if (upload?.state === "refused") {
        this.show("refused", upload.problem);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

/** The section stands while it has something to say; many that are done go with one click. */
function showSection() {
  section.hidden = items.size === 0;
  clear.hidden = [...items].filter((item) => item.isDone).length < 2;
}

clear.addEventListener("click", () => {
  for (const item of items) if (item.isDone) item.cancel();
  picker.focus(); // The button is gone now.
});

let wanted = null;

function startNext() {
  let free = AT_ONCE - [...items].filter((item) => ["sending", "away"].includes(item.state)).length;
  for (const item of items) {
    if (free <= 0) break;
    if (item.state === "waiting" && item.file) {
      item.start();
      free -= 1;
    }
  }
}

function addFiles(entries) {
  for (const { file, handle } of entries) {
    const known = [...items].find((item) =>
      !item.file && item.state === "paused" && item.name === file.name && item.length === file.size);
    const chosen = wanted && !known && wanted.length === file.size ? wanted : known;
    const item = chosen ?? new Item({ file, name: file.name, length: file.size });
    item.file = file;
    item.handle = handle;
    if (!chosen) list.append(item.element);
    const refusal = refusalOf(file);
    if (refusal) item.show("refused", refusal);
    else item.wait();
  }
  wanted = null;
  startNext();
}

picker.addEventListener("change", () => {
  addFiles([...picker.files].map((file) => ({ file, handle: null })));
  picker.value = "";
});

// The whole page accepts a drop -------------------------------------------------------------------

const veil = document.getElementById("drop-veil");
let depth = 0;

function hasFiles(event) {
  return [...(event.dataTransfer?.types ?? [])].includes("Files");
}

document.addEventListener("dragenter", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  depth += 1;
  veil.hidden = false;
});
document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
document.addEventListener("dragleave", (event) => {
  if (!hasFiles(event)) return;
  depth = Math.max(0, depth - 1);
  veil.hidden = depth === 0;
});
document.addEventListener("drop", async (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  depth = 0;
  veil.hidden = true;
  // Handles must be asked for before the first await: the list of items is empty afterwards.
  const promises = [...event.dataTransfer.items].filter((item) => item.kind === "file").map((item) => {
    const file = item.getAsFile();
    const handle = item.getAsFileSystemHandle?.().catch(() => null) ?? null;
    return Promise.resolve(handle).then((kept) => ({ file, handle: kept }));
  });
  const entries = await Promise.all(promises);
  addFiles(entries.filter(({ file, handle }) => file && handle?.kind !== "directory"));
});

// Uploads that were under way before this page was loaded -----------------------------------------

async function adopt(element) {
  const { upload, name, state, length, offset, problem } = element.dataset;
  const item = new Item({ name, length: Number(length), offset: Number(offset), id: upload });
  element.replaceWith(item.element);
  if (state === "refused") item.show("refused", problem);
  else if (state === "checking") item.check();
  else {
    item.show("paused", `${item.share} is safe on the server. Choose the same file again to go on.`);
    await item.fetchFile({ mayAsk: false });
    if (item.file) {
      item.wait();
      startNext();
    }
  }
}

for (const element of list.querySelectorAll("[data-upload]")) adopt(element);

window.addEventListener("beforeunload", (event) => {
  if ([...items].some((item) => ["sending", "waiting", "away"].includes(item.state))) event.preventDefault();
});
