"""Silero: one state per stream, whole recordings in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from asr_engine.audio import FloatSamples
from asr_engine.backends.silero import (
    BLOCK_WINDOWS,
    MIN_PART_WINDOWS,
    MODEL,
    STREAM_FILE,
    WINDOW_SAMPLES,
    SileroDetector,
    SileroFinder,
    create,
    create_finder,
)
from asr_engine.config import engine_settings
from asr_engine.errors import StreamError, UnknownStreamError
from asr_engine.ports import Chunk
from asr_engine.store import ModelStore
from tests.fakes.speech import ACCOUNT, SILLY, silence

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def detector() -> SileroDetector:
    return create(engine_settings())


@pytest.fixture(scope="module")
def finder() -> SileroFinder:
    return create_finder(engine_settings())


def windows(stream: str, audio: FloatSamples) -> Iterator[Chunk]:
    for start in range(0, len(audio) - WINDOW_SAMPLES + 1, WINDOW_SAMPLES):
        yield Chunk(stream, audio[start : start + WINDOW_SAMPLES], start)


def detect(detector: SileroDetector, stream: str, audio: FloatSamples) -> list[float]:
    detector.open(stream)
    found = [detector.detect([window])[0] for window in windows(stream, audio)]
    detector.close(stream)
    return found


def test_speech_is_told_from_silence(detector: SileroDetector) -> None:
    speech = detect(detector, "a", SILLY.samples())
    assert np.median(speech) > 0.8
    assert max(detect(detector, "a", silence(3))) < 0.2


def test_a_noisy_room_is_no_speech(detector: SileroDetector) -> None:
    noise = np.random.default_rng(5).normal(0, 0.02, 5 * 16_000).astype(np.float32)
    assert max(detect(detector, "a", noise)) < 0.5


def test_many_streams_are_shared_among_threads_and_hear_the_same(
    detector: SileroDetector,
) -> None:
    shared = SileroDetector(
        ModelStore(engine_settings().model_dir).path(MODEL) / STREAM_FILE, threads=2
    )
    names = [f"s{index}" for index in range(2 * MIN_PART_WINDOWS + 1)]
    voices = (SILLY.samples(), ACCOUNT.samples())
    for name in names:
        shared.open(name)
    expected = [detect(detector, "a", voice[: 20 * WINDOW_SAMPLES]) for voice in voices]
    for step in range(20):
        start = step * WINDOW_SAMPLES
        heard = shared.detect(
            [
                Chunk(name, voices[index % 2][start : start + WINDOW_SAMPLES], start)
                for index, name in enumerate(names)
            ]
        )
        for index, probability in enumerate(heard):
            assert probability == pytest.approx(expected[index % 2][step], abs=1e-5)


def test_streams_share_a_call_without_hearing_each_other(detector: SileroDetector) -> None:
    audio = {"a": SILLY.samples(), "b": ACCOUNT.samples()}
    alone = {name: detect(detector, name, samples) for name, samples in audio.items()}
    for name in audio:
        detector.open(name)
    both = [
        detector.detect(list(pair))
        for pair in zip(windows("a", audio["a"]), windows("b", audio["b"]), strict=False)
    ]
    for column, name in enumerate(audio):
        together = [row[column] for row in both]
        assert together == pytest.approx(alone[name][: len(together)], abs=1e-4)
        detector.close(name)


def test_an_opened_stream_begins_fresh(detector: SileroDetector) -> None:
    first = detect(detector, "a", SILLY.samples())
    assert detect(detector, "a", SILLY.samples()) == pytest.approx(first, abs=1e-6)


def test_misuse_is_refused(detector: SileroDetector) -> None:
    window = Chunk("nobody", silence(1)[:WINDOW_SAMPLES], 0)
    with pytest.raises(UnknownStreamError):
        detector.detect([window])
    detector.open("a")
    with pytest.raises(StreamError):
        detector.detect([Chunk("a", silence(1)[: WINDOW_SAMPLES - 1], 0)])
    with pytest.raises(StreamError):
        detector.detect([Chunk("a", window.samples, 0)] * 2)
    detector.close("a")
    detector.close("a")
    assert detector.detect([]) == []


def test_a_recording_gets_what_a_stream_gets(
    detector: SileroDetector, finder: SileroFinder
) -> None:
    audio = np.concatenate((ACCOUNT.samples(), silence(1), SILLY.samples()))
    streamed = detect(detector, "a", audio)
    found = list(finder.speech_probabilities([audio]))
    assert found[: len(streamed)] == pytest.approx(streamed, abs=1e-4)


@pytest.mark.parametrize("piece", [1000, WINDOW_SAMPLES, 70_001])
def test_pieces_of_any_size_give_the_same(finder: SileroFinder, piece: int) -> None:
    audio = ACCOUNT.samples()
    pieces = (audio[start : start + piece] for start in range(0, len(audio), piece))
    found = list(finder.speech_probabilities(pieces))
    assert found == pytest.approx(list(finder.speech_probabilities([audio])), abs=1e-6)
    assert len(found) == -(-len(audio) // WINDOW_SAMPLES)


def test_a_recording_is_read_no_further_than_needed(finder: SileroFinder) -> None:
    """Memory is bounded by the block, whatever the length."""
    read = 0

    def endless() -> Iterator[FloatSamples]:
        nonlocal read
        while True:
            read += 1
            yield silence(1)

    found = finder.speech_probabilities(endless())
    for _ in range(BLOCK_WINDOWS):
        next(found)
    assert read <= BLOCK_WINDOWS * WINDOW_SAMPLES // 16_000 + 1


def test_no_audio_gives_no_windows(finder: SileroFinder) -> None:
    assert list(finder.speech_probabilities([])) == []
