"""What the page plays of a recording, and the waveform that it draws.

A recording that every browser plays and seeks in is played as it came. Others are copied into a
container that browsers seek in, or, where they do not know the codec, encoded from what the models
hear, so that sound and transcript have one clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.batch.decode import AudioSource, decode_source, open_audio

PLAYER_STEM: Final = "player"
PEAKS_NAME: Final = "peaks.json"
MAX_PEAKS: Final = 2_000
PEAK_SAMPLES: Final = SAMPLE_RATE // 10
"""Samples of each peak while reading; joined at the end so that MAX_PEAKS are not exceeded."""
SAME_DURATION_S: Final = 0.5
"""A container that errs by more about its duration would mislead a player."""
BIT_RATE: Final = 64_000


@dataclass(frozen=True, slots=True)
class PlayerFile:
    """Name within the recording's folder, and media type."""

    name: str
    media_type: str


@dataclass(frozen=True, slots=True)
class _Target:
    file: PlayerFile
    muxer: str

    def of(self, track: int | None) -> _Target:
        """The same for one of several tracks."""
        if track is None:
            return self
        name = f"{PLAYER_STEM}-{track}.{self.file.name.rpartition('.')[2]}"
        return replace(self, file=replace(self.file, name=name))


AS_IS: Final = {
    ("mp3", "mp3"): "audio/mpeg",
    ("flac", "flac"): "audio/flac",
    ("wav", "pcm_s16le"): "audio/wav",
    ("mov", "aac"): "audio/mp4",
}
"""(container, codec) that browsers play, with its media type."""

_M4A: Final = _Target(PlayerFile(f"{PLAYER_STEM}.m4a", "audio/mp4"), "mp4")
_WEBM: Final = _Target(PlayerFile(f"{PLAYER_STEM}.webm", "audio/webm"), "webm")
_MP3: Final = _Target(PlayerFile(f"{PLAYER_STEM}.mp3", "audio/mpeg"), "mp3")
COPIED: Final = {"aac": _M4A, "opus": _WEBM, "vorbis": _WEBM, "mp3": _MP3}
"""Codecs that browsers play once they are in the right container."""


def make_player_file(source: Path, folder: Path, *, track: int | None = None) -> PlayerFile:
    """Make what the page plays of `source`, and `peaks.json`, in `folder`.

    `track` is one of several audio tracks: it gets a file of its own, named after it. Where the
    recording plays as it came, the answer is its own name and no file is made (it must lie in
    `folder`). Raises AudioError, and OSError where the disk is full.
    """
    with open_audio(source, track=track) as audio:
        decoded_samples = _write_peaks(audio, folder / PEAKS_NAME)
        is_plain = _is_plain(audio)
        media_type = AS_IS.get((_container(audio), _codec(audio)))
        is_alone = track is None and not audio.has_video
        if is_plain and media_type and is_alone and _has_true_sizes(source):
            declared_s = audio.declared_s or 0.0
            if abs(declared_s - decoded_samples / SAMPLE_RATE) <= SAME_DURATION_S:
                return PlayerFile(source.name, media_type)
        target = COPIED.get(_codec(audio)) if is_plain else None
    if target is not None and _copy(source, folder, target.of(track), track):
        return target.of(track).file
    target = _M4A.of(track)
    _encode(source, folder, target, track)
    return target.file


def _container(audio: AudioSource) -> str:
    return str(audio.container.format.name.split(",")[0])


def _codec(audio: AudioSource) -> str:
    return str(audio.stream.codec_context.codec.canonical_name)


def _is_plain(audio: AudioSource) -> bool:
    """Undamaged, of a true length, mono or stereo, and starting with the recording, so that a copy
    of the track alone keeps the clock."""
    import av

    if audio.bad_packets or audio.damage.lost_s or not audio.has_true_header:
        return False
    if audio.stream.codec_context.layout.nb_channels > 2:
        return False
    started, track = audio.container.start_time, audio.stream.start_time
    if started is None or track is None:
        return True
    late_s = float(track * audio.stream.time_base) - started / av.time_base
    return bool(late_s <= SAME_DURATION_S / 10)


def _has_true_sizes(source: Path) -> bool:
    """A WAV file's own size is right. (Browsers trust it; RF64 they do not know.)"""
    with source.open("rb") as file:
        head = file.read(8)
    magic, size = head[:4], int.from_bytes(head[4:], "little")
    if magic in {b"RF64", b"riff"}:
        return False
    return magic != b"RIFF" or abs(source.stat().st_size - 8 - size) <= 1


def _write_peaks(audio: AudioSource, path: Path) -> int:
    """Write the waveform as whole numbers 0..100 of the loudest; returns the samples decoded."""
    peaks: list[float] = []
    samples = 0
    for block in decode_source(audio):
        samples += len(block)
        padded = np.pad(np.abs(block), (0, -len(block) % PEAK_SAMPLES))
        peaks += padded.reshape(-1, PEAK_SAMPLES).max(axis=1).tolist()
    joined = -(-len(peaks) // MAX_PEAKS)
    values = np.array(peaks + [0.0] * (-len(peaks) % joined)).reshape(-1, joined).max(axis=1)
    loudest = float(values.max()) or 1.0
    with _replacing(path) as part:
        part.write_text(json.dumps([round(100 * value / loudest) for value in values.tolist()]))
    return samples


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A scratch path that becomes `path` at the end, if it was written and nothing failed."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        if part.exists():
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _copy(source: Path, folder: Path, target: _Target, number: int | None) -> bool:
    """Copy the audio track unchanged; False where its container or stamps do not allow it."""
    import av

    with (
        open_audio(source, track=number) as audio,
        _replacing(folder / target.file.name) as part,
    ):
        try:
            with av.open(str(part), "w", format=target.muxer, options=_options(target)) as output:
                track = output.add_stream_from_template(audio.stream)
                for packet in audio.container.demux(audio.stream):
                    if packet.dts is not None:
                        packet.stream = track
                        output.mux(packet)
        except (av.InvalidDataError, av.ArgumentError, ValueError):
            part.unlink(missing_ok=True)
            return False
    return True


def _encode(source: Path, folder: Path, target: _Target, number: int | None) -> None:
    import av

    with (
        open_audio(source, track=number) as audio,
        _replacing(folder / target.file.name) as part,
        av.open(str(part), "w", format=target.muxer, options=_options(target)) as output,
    ):
        track = output.add_stream("aac", rate=SAMPLE_RATE, layout="mono", bit_rate=BIT_RATE)
        position = 0
        for block in decode_source(audio):
            frame = _frame(block, position)
            position += len(block)
            output.mux(track.encode(frame))
        output.mux(track.encode(None))


def _frame(block: FloatSamples, position: int) -> Any:
    import av

    frame = av.AudioFrame.from_ndarray(np.clip(block, -1, 1)[None], format="fltp", layout="mono")
    frame.sample_rate, frame.pts = SAMPLE_RATE, position
    return frame


def _options(target: _Target) -> dict[str, str]:
    return {"movflags": "faststart"} if target.muxer == "mp4" else {}
