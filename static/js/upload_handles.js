// Keeps handles of dropped files over a reload (Chromium's File System Access; elsewhere nothing is
// kept and the person chooses the file again). Owns one IndexedDB store, keyed by the upload's id.

const NAME = "uploads";

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(NAME);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function inStore(mode, use) {
  try {
    const database = await open();
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(NAME, mode);
      const request = use(transaction.objectStore(NAME));
      transaction.oncomplete = () => { database.close(); resolve(request.result); };
      transaction.onabort = () => { database.close(); reject(transaction.error); };
    });
  } catch {
    return null; // Private windows may have no store: then the file is chosen again.
  }
}

export function keepHandle(id, handle) {
  return handle ? inStore("readwrite", (store) => store.put(handle, id)) : null;
}

export function forgetHandle(id) {
  return id ? inStore("readwrite", (store) => store.delete(id)) : null;
}

/** The handle of upload `id` if it may be read (after asking, where `mayAsk`), else null. */
export async function handleFor(id, { mayAsk }) {
  const handle = await inStore("readonly", (store) => store.get(id));
  if (!handle?.queryPermission) return null;
  let leave = await handle.queryPermission({ mode: "read" });
  if (leave !== "granted" && mayAsk) {
    leave = await handle.requestPermission({ mode: "read" }).catch(() => "denied");
  }
  return leave === "granted" ? handle : null;
}
