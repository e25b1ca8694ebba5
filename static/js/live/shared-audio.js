/** The sound of a tab or of the computer, by the browser's own dialogue for sharing. */

/** What was shared has no sound: the box for it was not ticked, or the system has none. */
class NoSoundError extends Error {
  name = "NoSoundError";
}

/**
 * Ask what to share; must follow a click. Raises what getDisplayMedia raises, and NoSoundError.
 *
 * Browsers share no sound without a picture. It is asked for as small as can be and let go at once.
 */
export async function openSharedAudio() {
  const stream = await navigator.mediaDevices.getDisplayMedia({
    video: { width: { max: 320 }, height: { max: 180 }, frameRate: { max: 1 } },
    audio: {
      // A meeting is heard as it sounds, and the person goes on hearing it.
      echoCancellation: false,
      noiseSuppression: false,
      autoGainControl: false,
      suppressLocalAudioPlayback: false,
    },
    systemAudio: "include",
    surfaceSwitching: "include",
    selfBrowserSurface: "exclude",
  });
  for (const track of stream.getVideoTracks()) {
    track.stop();
    stream.removeTrack(track);
  }
  if (stream.getAudioTracks().length === 0) throw new NoSoundError();
  return stream;
}
