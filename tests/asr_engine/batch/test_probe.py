"""A probe tells what a recording is, in a child that cannot take the server with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asr_engine.batch.probe import probe, probe_safely
from asr_engine.errors import (
    AudioTooLongError,
    NoAudioTrackError,
    NotAudioError,
)
from tests.fakes.audio import wav_bytes
from tests.fakes.containers import tone, write_container, write_silent_video


def test_a_recording_is_described_by_what_decodes(tmp_path: Path) -> None:
    sound = np.stack([tone(1.5), tone(1.5)])
    path = write_container(
        tmp_path / "a",
        sound,
        container="mp4",
        codec="aac",
        layout="stereo",
        rate=48_000,
        with_video=True,
    )
    found = probe_safely(path, max_duration_s=10)
    assert (found.container, found.codec, found.channels) == ("mov", "aac", 2)
    assert found.has_video
    assert found.sample_rate == 48_000
    assert abs(found.duration_ms - 1500) < 60
    assert not found.is_damaged


def test_duration_is_known_where_the_container_states_none(tmp_path: Path) -> None:
    """As MediaRecorder writes it: a live stream of WebM."""
    path = tmp_path / "a.webm"
    import av

    with av.open(str(path), "w", format="webm", options={"live": "1"}) as output:
        track = output.add_stream("libopus", rate=48_000, layout="mono")
        for start in range(0, 96_000, 960):
            frame = av.AudioFrame.from_ndarray(
                np.zeros((1, 960), np.float32), format="flt", layout="mono"
            )
            frame.sample_rate, frame.pts = 48_000, start
            output.mux(track.encode(frame))
        output.mux(track.encode(None))
    found = probe(path, max_duration_s=10)
    assert found.declared_ms is None
    assert abs(found.duration_ms - 2000) < 30


def test_the_child_hands_back_the_same_error(tmp_path: Path) -> None:
    text = tmp_path / "a.wav"
    text.write_text("not audio " * 100)
    with pytest.raises(NotAudioError):
        probe_safely(text, max_duration_s=10)
    with pytest.raises(NoAudioTrackError):
        probe_safely(write_silent_video(tmp_path / "v"), max_duration_s=10)


def test_a_recording_longer_than_allowed_is_refused_by_what_decodes(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav_bytes(tone(3.0)))
    with pytest.raises(AudioTooLongError):
        probe_safely(path, max_duration_s=2)


def test_a_missing_file_is_the_callers_fault(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        probe_safely(tmp_path / "gone", max_duration_s=10)
