/** What can be heard, and what is wrong with it, in words. Pure. */

export const MICROPHONE = "microphone";
export const SHARED = "shared";
export const BOTH = "both";

export function hearsMicrophone(choice) {
  return choice !== SHARED;
}

export function hearsShared(choice) {
  return choice !== MICROPHONE;
}

const MICROPHONE_REFUSALS = {
  NotAllowedError:
    "The browser does not let this page hear the microphone. Allow it with the sign beside the address, then try again.",
  NotFoundError: "No microphone was found. Plug one in, then try again.",
  NotReadableError:
    "The microphone cannot be opened. Another program may be using it: close that, then try again.",
  OverconstrainedError: "The chosen microphone is not there any more. Choose another.",
};

const SHARING_REFUSALS = {
  NoSoundError:
    "That was shared without its sound. Share again, choose a tab or the whole screen, and switch on “Also share audio”.",
  NotAllowedError: "Nothing was shared. Share again, and choose the tab or the screen whose sound is to be heard.",
  InvalidStateError: "The browser shares sound only after a click: press Share.",
  NotReadableError: "The browser cannot hear the sound of that. Choose a tab instead.",
};

const TROUBLES = {
  microphone: {
    ended: "The microphone was unplugged. Plug it in again, or choose another.",
    muted: "The microphone is muted by the computer. Nothing is heard until it is switched on.",
    silent: "Nothing at all comes from the microphone. It may be switched off, or be the wrong one.",
  },
  shared: {
    ended: "Sharing has ended.",
    muted: "The sound of what is shared does not come at the moment.",
    silent: "No sound comes from what is shared. Is it playing, and is its sound on?",
  },
};

export const STALLED = "The browser has stopped listening.";

/** A sentence for an error of getUserMedia. */
export function microphoneRefusal({ name }) {
  return MICROPHONE_REFUSALS[name] ?? "The microphone could not be opened. Check it, then try again.";
}

/** A sentence for an error of getDisplayMedia, or for a share that brought no sound. */
export function sharingRefusal({ name }) {
  return SHARING_REFUSALS[name] ?? "The browser could not share the sound. Try again, or use the microphone.";
}

/** Why this browser can share no sound, or "". `devices` is navigator.mediaDevices. */
export function sharingObstacle(devices) {
  if (typeof devices?.getDisplayMedia !== "function") {
    return "This browser cannot share the sound of a tab or of the computer. On a computer, Chrome and Edge can.";
  }
  // Firefox and Safari share pictures alone; those that share sound know this constraint.
  if (!devices.getSupportedConstraints().suppressLocalAudioPlayback) {
    return "This browser shares pictures without their sound. Chrome and Edge share the sound too.";
  }
  return "";
}

/** The sentence for what `microphone` and `shared` say of themselves (Source.trouble), or "". */
export function troubleSentence({ microphone, shared }) {
  const sentences = [];
  if (microphone) sentences.push(TROUBLES.microphone[microphone]);
  if (shared) sentences.push(TROUBLES.shared[shared]);
  return sentences.join(" ");
}

/** The browser's own bar ended the share, or the tab is gone; `choice` was in force. */
export function sharingEnded(choice) {
  return choice === BOTH
    ? "Sharing was stopped. Only the microphone is heard now."
    : "Sharing was stopped, so captions are paused. Share again, or choose the microphone.";
}

/** A reload ends every share; `choice` was in force before it. */
export function sharingLostByReload(choice) {
  return choice === BOTH
    ? "The reload ended the sharing. Only the microphone is heard until you share again."
    : "The reload ended the sharing, so captions are paused. Share again, or choose the microphone.";
}
