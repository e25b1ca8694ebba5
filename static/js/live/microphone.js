/** Microphones: which there are, opening one, and why a page may have none. */

/** Why this page can hear nothing at all, or "". */
export function hearingObstacle() {
  if (navigator.mediaDevices?.getUserMedia === undefined) {
    return window.isSecureContext
      ? "This browser gives pages no microphone. Use a current Chrome, Edge, Firefox or Safari."
      : "This page came by http, and browsers give a microphone only to pages that came by https. Open the same address with https:// to start captions. Where that fails, ask an administrator to switch https on (make run LAN=1).";
  }
  if (window.AudioWorkletNode === undefined) {
    return "This browser is too old to hear the microphone well. Use a current Chrome, Edge, Firefox or Safari.";
  }
  return "";
}

/** {id, name}[]; names are known only after a microphone was allowed once. */
export async function microphones() {
  const all = await navigator.mediaDevices.enumerateDevices();
  return all
    .filter((device) => device.kind === "audioinput" && device.deviceId !== "")
    .map((device, i) => ({ id: device.deviceId, name: device.label || `Microphone ${i + 1}` }));
}

/** Whether it may be opened without asking; a browser that does not tell is asked on a click. */
export async function isMicrophoneAllowed() {
  try {
    return (await navigator.permissions.query({ name: "microphone" })).state === "granted";
  } catch {
    return false;
  }
}

/**
 * Open `deviceId`, or the browser's choice where it is "" or not there any more. Raises what
 * getUserMedia raises.
 */
export async function openMicrophone(deviceId) {
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: {
        ...(deviceId ? { deviceId: { exact: deviceId } } : {}),
        channelCount: { ideal: 1 },
        // The room is to be heard as it is: loudspeakers of a call too, and quiet voices.
        echoCancellation: false,
        noiseSuppression: false,
        autoGainControl: true,
      },
    });
  } catch (error) {
    if (error.name === "OverconstrainedError" && deviceId) return openMicrophone("");
    throw error;
  }
}
