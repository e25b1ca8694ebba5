/**
 * Passkeys and security keys: says in words what the browser refuses, and offers nothing where the
 * browser has no keys. The exchange itself is allauth's (mfa/js/webauthn.js).
 */

const WORDS = {
  NotAllowedError: "The browser got no key: it was cancelled, or took too long. Nothing was changed. Try again.",
  InvalidStateError: "This key is set up for you already.",
  NotSupportedError: "This key cannot do what is asked of it. Try another.",
  SecurityError: "Keys work only under a name like captions.example.org or localhost, not under a number.",
};

function say(sentence) {
  const strip = document.getElementById("key-error");
  if (!strip) return;
  strip.querySelector("p").textContent = sentence;
  strip.hidden = false;
}

document.addEventListener("allauth.error", (event) => {
  event.preventDefault();
  const { exception } = event.detail;
  say(WORDS[exception?.name] ?? "The key could not be used. Nothing was changed. Try again.");
});

const hasKeys = window.isSecureContext && "PublicKeyCredential" in window;
for (const element of document.querySelectorAll("[data-needs-key]")) element.hidden = !hasKeys;
for (const element of document.querySelectorAll("[data-without-key]")) element.hidden = hasKeys;
