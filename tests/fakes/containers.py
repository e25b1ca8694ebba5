"""Recordings in odd containers, made by the library that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.stream import Disposition
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples


def tone(seconds: float, *, hertz: float = 440.0, level: float = 0.3) -> FloatSamples:
    """float32 [n] at 16 kHz."""
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return (level * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


def write_container(
    path: Path,
    channels: NDArray[np.float32],
    *,
    container: str,
    codec: str,
    layout: str = "mono",
    rate: int = SAMPLE_RATE,
    with_video: bool = False,
) -> Path:
    """Write float32 [channels, n] at 16 kHz; the codec's own format, `rate` resampled to."""
    with av.open(str(path), "w", format=container) as output:
        track: Any = output.add_stream(codec, rate=rate, layout=layout)
        if not codec.startswith(("pcm", "flac")):
            track.bit_rate = 64_000 * len(channels)
        video = _add_picture(output) if with_video else None
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(channels.T).reshape(1, -1), format="flt", layout=layout
        )
        frame.sample_rate, frame.pts = SAMPLE_RATE, 0
        resampler = av.AudioResampler(track.codec_context.format, layout, rate)
        for part in [*resampler.resample(frame), *resampler.resample(None)]:
            output.mux(track.encode(part))
        output.mux(track.encode(None))
        if video is not None:
            output.mux(video.encode(None))
    return path


def write_silent_video(path: Path) -> Path:
    """A video without an audio track."""
    with av.open(str(path), "w", format="mp4") as output:
        output.mux(_add_picture(output).encode(None))
    return path


def _add_picture(output: Any) -> Any:
    track = output.add_stream("mpeg4", rate=10)
    track.width = track.height = 32
    track.pix_fmt = "yuv420p"
    for number in range(5):
        frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
        frame.pts = number
        output.mux(track.encode(frame.reformat(format="yuv420p")))
    return track


def write_tracks(path: Path, *tracks: FloatSamples, titles: Sequence[str] = ()) -> Path:
    """A Matroska file with an audio track of PCM for each float32 [n] or [channels, n]; the first
    is the default one.
    """
    with av.open(str(path), "w", format="matroska") as output:
        made: list[Any] = []
        for number, samples in enumerate(tracks):
            layout = "stereo" if samples.ndim == 2 else "mono"
            track: Any = output.add_stream("pcm_s16le", rate=SAMPLE_RATE, layout=layout)
            track.disposition = Disposition.default if number == 0 else Disposition(0)
            track.metadata["title"] = titles[number] if titles else ""
            made.append(track)
        for track, samples in zip(made, tracks, strict=True):
            pcm = (np.clip(np.atleast_2d(samples), -1, 1) * 32767).astype(np.int16)
            frame = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(pcm.T).reshape(1, -1), format="s16", layout=track.layout.name
            )
            frame.sample_rate, frame.pts = SAMPLE_RATE, 0
            output.mux(track.encode(frame))
            output.mux(track.encode(None))
    return path


def voice(seconds: float, *, seed: int = 0, level: float = 0.1) -> FloatSamples:
    """Noise in syllables, float32 [n] at 16 kHz: no other `seed` sounds like it."""
    noise = np.random.default_rng(seed).standard_normal(round(seconds * SAMPLE_RATE))
    syllables = 0.6 + 0.4 * np.sin(2 * np.pi * 4 * np.arange(len(noise)) / SAMPLE_RATE + seed)
    return (level * noise * syllables).astype(np.float32)
