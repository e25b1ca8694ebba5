"""What an upload is, which of its tracks is taken, and what the page plays of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends.scripted import ScriptedDetector
from asr_engine.batch import intake
from asr_engine.batch.decode import decode_audio
from asr_engine.batch.intake import take_in, take_in_safely
from asr_engine.errors import AudioTooLongError, ModelMissingError, NotAudioError
from tests.fakes.audio import wav_bytes
from tests.fakes.containers import tone, voice, write_tracks


@pytest.fixture(autouse=True)
def _scripted_finder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Speech is what sounds."""
    monkeypatch.setattr("asr_engine.registry.speech_finder", lambda settings: ScriptedDetector())


def silence(seconds: float) -> FloatSamples:
    return np.zeros(round(seconds * SAMPLE_RATE), np.float32)


def played(source: Path, name: str) -> FloatSamples:
    return np.concatenate(list(decode_audio(source.parent / name)))


def test_a_recording_of_one_channel_is_taken_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(wav_bytes(tone(1.0)))
    found = take_in(source, max_duration_s=60)
    assert (found.probe.duration_ms, found.player.name, found.tracks) == (1000, "source.bin", ())


def test_the_track_with_speech_is_taken_and_played(tmp_path: Path) -> None:
    source = write_tracks(tmp_path / "source.bin", silence(4.0), voice(2.0))
    found = take_in(source, max_duration_s=60)
    assert [track.has_speech for track in found.tracks] == [False, True]
    assert found.probe.duration_ms == 2000
    assert found.player.name == "player-1.m4a"
    assert np.abs(played(source, found.player.name)).max() > 0.1
    assert max(json.loads((tmp_path / "peaks.json").read_text())) == 100


def test_the_track_that_somebody_chose_is_taken_and_played(tmp_path: Path) -> None:
    source = write_tracks(tmp_path / "source.bin", voice(2.0), voice(3.0, seed=1))
    assert take_in(source, max_duration_s=60).player.name == "player-0.m4a"
    found = take_in(source, max_duration_s=60, track=1)
    assert (found.probe.duration_ms, found.player.name) == (3000, "player-1.m4a")
    assert len(played(source, "player-1.m4a")) == pytest.approx(3 * SAMPLE_RATE, abs=2000)


def test_a_track_that_nobody_may_hear_in_full_cannot_be_chosen(tmp_path: Path) -> None:
    source = write_tracks(tmp_path / "source.bin", voice(2.0), voice(9.0, seed=1))
    found = take_in(source, max_duration_s=5)
    assert [track.index for track in found.tracks] == [0]
    with pytest.raises(AudioTooLongError):
        take_in(source, max_duration_s=5, track=1)


def test_without_a_finder_the_default_track_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(settings: object) -> None:
        raise ModelMissingError("silero-vad")

    monkeypatch.setattr("asr_engine.registry.speech_finder", missing)
    source = write_tracks(tmp_path / "source.bin", silence(1.0), voice(2.0))
    found = take_in(source, max_duration_s=60)
    assert (found.tracks, found.probe.duration_ms) == ((), 1000)


def test_a_child_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASR_BATCH_BACKEND", "scripted")
    source = write_tracks(tmp_path / "source.bin", voice(1.0), voice(2.0, seed=1))
    assert take_in_safely(source, max_duration_s=60, track=1) == take_in(
        source, max_duration_s=60, track=1
    )


def test_a_child_writes_no_more_than_a_recording_may_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[int] = []
    monkeypatch.setattr(
        intake.confined, "answer", lambda work, written_bytes: allowed.append(written_bytes)
    )
    source = tmp_path / "source.bin"
    source.write_bytes(bytes(1000))
    monkeypatch.setattr("sys.argv", ["intake", str(source), "3600", ""])
    intake.main()
    assert allowed == [64_000 // 8 * 3600 + intake.SPARE_BYTES]


def test_what_is_no_recording_is_refused_and_a_missing_file_is_the_callers_fault(
    tmp_path: Path,
) -> None:
    source = tmp_path / "source.bin"
    with pytest.raises(FileNotFoundError):
        take_in_safely(source, max_duration_s=60)
    source.write_text("words " * 100)
    with pytest.raises(NotAudioError):
        take_in(source, max_duration_s=60)
