"""Recordings in odd containers, made by the library that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
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
