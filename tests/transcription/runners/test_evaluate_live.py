"""A live evaluation says what a live session would have shown, without waiting for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends.scripted import encode_blocks, script, script_text
from asr_engine.config import EngineSettings
from asr_engine.errors import AudioError
from transcription.runners.evaluate_live import SimulatedClock, transcribe_live

SETTINGS = EngineSettings(live_backend="scripted")


@pytest.fixture
def speak(tmp_path: Path) -> Path:
    return tmp_path / "spoken.wav"


def write(path: Path, samples: FloatSamples) -> None:
    soundfile.write(path, samples, SAMPLE_RATE, subtype="PCM_16")


def test_everything_spoken_is_in_the_text(speak: Path) -> None:
    blocks = script(40)
    write(speak, encode_blocks(blocks))
    result = transcribe_live(speak, language=None, settings=SETTINGS)
    assert result.text == script_text(blocks)
    assert result.audio_ms == len(blocks) * 100
    assert len(result.segments) == len(result.final_delays_ms) == 5


def test_last_words_are_heard_without_a_pause_after_them(speak: Path) -> None:
    blocks = [None, None, None, *range(10, 23)]
    write(speak, encode_blocks(blocks)[:-700])
    assert transcribe_live(speak, language=None, settings=SETTINGS).text == script_text(blocks)


def test_delays_are_counted_on_the_clock_of_the_audio(speak: Path) -> None:
    """The silence rule is part of the time to final; nothing is shown before it is spoken."""
    write(speak, encode_blocks(script(8)))
    result = transcribe_live(speak, language=None, settings=SETTINGS)
    assert result.first_partial_ms is not None
    assert result.first_partial_ms > 0
    assert min(result.final_delays_ms) >= 500
    assert min(result.finalisation_delays_ms) >= 0
    assert result.rtf > 0


def test_silence_gives_no_text_and_no_delays(speak: Path) -> None:
    write(speak, encode_blocks([None] * 30))
    result = transcribe_live(speak, language=None, settings=SETTINGS)
    assert (result.text, result.segments, result.first_partial_ms) == ("", (), None)


def test_what_is_no_audio_is_refused(speak: Path) -> None:
    speak.write_bytes(b"")
    with pytest.raises(AudioError):
        transcribe_live(speak, language=None, settings=SETTINGS)


def test_waiting_costs_no_time() -> None:
    clock = SimulatedClock()
    clock.start()
    clock.wait_until(3600.0)
    assert clock.now() >= 3600.0
    clock.wait_until(10.0)
    assert clock.now() >= 3600.0
