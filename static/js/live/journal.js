/**
 * A capture on this browser's disk (IndexedDB), so that a reload or a crash loses nothing.
 *
 * One row of state per session, and one row per item that the server has not confirmed. Deleted
 * when the session is closed and on a log-out; what nobody came back for is deleted after a day.
 */

const NAME = "live-captures";
const VERSION = 1;
const KEPT_FOR_MS = 24 * 3600 * 1000;

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function itemsOf(session, below = Infinity) {
  return IDBKeyRange.bound([session, -1], [session, below], true, true);
}

/** Somebody logs out: nothing that was heard stays in this browser. Resolves when it is gone. */
export function forgetEverything() {
  const request = indexedDB.deleteDatabase(NAME);
  return new Promise((resolve) => (request.onsuccess = request.onerror = resolve));
}

/** Any page does this: who never opens a capture again leaves nothing behind either. */
export async function forgetWhatIsOld() {
  const databases = (await indexedDB.databases?.()) ?? [];
  if (databases.some(({ name }) => name === NAME)) (await Journal.open()).database.close();
}

export class Journal {
  static async open() {
    const request = indexedDB.open(NAME, VERSION);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("captures", { keyPath: "session" });
      request.result.createObjectStore("items", { keyPath: ["session", "ordinal"] });
    };
    const journal = new Journal(await settled(request));
    await journal.#forgetOld();
    return journal;
  }

  constructor(database) {
    this.database = database;
    /** A log-out deletes everything: from then on this one remembers nothing. */
    this.isDeleted = false;
    database.onversionchange = () => {
      this.isDeleted = true;
      database.close();
    };
  }

  /** {captureId, hasBeenReady, state, items} of an unfinished capture, or null. */
  async load(session) {
    const transaction = this.database.transaction(["captures", "items"]);
    const [capture, items] = await Promise.all([
      settled(transaction.objectStore("captures").get(session)),
      settled(transaction.objectStore("items").getAll(itemsOf(session))),
    ]);
    return capture === undefined ? null : { ...capture, items };
  }

  /** `capture` has all that `load` returns but the items; `added` are new items. */
  save(session, capture, added = []) {
    if (this.isDeleted) return;
    const transaction = this.database.transaction(["captures", "items"], "readwrite");
    transaction.objectStore("captures").put({ session, touchedMs: Date.now(), ...capture });
    for (const item of added) transaction.objectStore("items").put({ session, ...item });
  }

  /** Items whose ordinal is below `ordinal` are on the server's disk. */
  forget(session, ordinal) {
    if (this.isDeleted) return;
    const transaction = this.database.transaction("items", "readwrite");
    transaction.objectStore("items").delete(itemsOf(session, ordinal));
  }

  /** Resolves when everything saved so far is stored. */
  stored() {
    if (this.isDeleted) return Promise.resolve();
    const transaction = this.database.transaction(["captures", "items"], "readwrite");
    transaction.objectStore("captures").count();
    return new Promise((resolve) => (transaction.oncomplete = transaction.onabort = resolve));
  }

  /** Resolves when the session's rows are gone. */
  remove(session) {
    if (this.isDeleted) return Promise.resolve();
    const transaction = this.database.transaction(["captures", "items"], "readwrite");
    transaction.objectStore("captures").delete(session);
    transaction.objectStore("items").delete(itemsOf(session));
    return new Promise((resolve) => (transaction.oncomplete = transaction.onabort = resolve));
  }

  async #forgetOld() {
    const transaction = this.database.transaction("captures");
    const captures = await settled(transaction.objectStore("captures").getAll());
    for (const { session, touchedMs } of captures) {
      if (Date.now() - touchedMs > KEPT_FOR_MS) this.remove(session);
    }
  }
}
