"""A recording to text in groups, each of which anybody may go on from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends.scripted import (
    ScriptedBatchModel,
    ScriptedDetector,
    encode_blocks,
    script,
    script_text,
)
from asr_engine.batch import two_pass
from asr_engine.batch.two_pass import GroupResult, transcribe
from asr_engine.errors import CancelledError, NotAudioError, UnsupportedLanguageError
from asr_engine.ports import DecodeOptions, Window
from asr_engine.results import LanguageGuess, Segment
from tests.fakes.audio import wav_bytes

BLOCKS = script(900, utterance_words=60, pause_ms=1500)


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """112 s: 900 words in 15 utterances."""
    path = tmp_path_factory.mktemp("speech") / "source.bin"
    path.write_bytes(wav_bytes(encode_blocks(BLOCKS)))
    return path


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short recording has several groups."""
    monkeypatch.setattr(two_pass, "MIN_GROUP_WINDOWS", 1)


class Model(ScriptedBatchModel):
    """One window a batch; counts its calls."""

    batch_windows = 1

    def __init__(self) -> None:
        self.encoded = 0
        self.detections = 0

    def encode(self, windows: Sequence[Window]) -> object:
        self.encoded += len(windows)
        return super().encode(windows)

    def detect_language(self, windows: Sequence[Window], encoded: object) -> LanguageGuess:
        self.detections += 1
        return LanguageGuess("en", 0.75)


def run(
    path: Path, *, model: ScriptedBatchModel | None = None, language: str | None = None
) -> list[GroupResult]:
    return list(
        transcribe(path, model=model or Model(), finder=ScriptedDetector(), language=language)
    )


def text(groups: Iterable[GroupResult]) -> str:
    return " ".join(segment.text for group in groups for segment in group.segments)


def test_every_word_comes_once_and_in_order(speech: Path) -> None:
    assert text(run(speech)) == script_text(BLOCKS)


def test_times_are_those_of_the_recording(speech: Path) -> None:
    places = {
        f"w{number}": index * 100 for index, number in enumerate(BLOCKS) if number is not None
    }
    for group in run(speech):
        for segment in group.segments:
            for word in segment.words:
                assert abs(word.start_ms - places[word.text]) <= 60


def test_segments_are_sorted_and_inside_the_recording(speech: Path) -> None:
    groups = run(speech)
    segments = [segment for group in groups for segment in group.segments]
    duration_ms = len(BLOCKS) * 100
    assert all(0 <= s.start_ms < s.end_ms <= duration_ms for s in segments)
    assert all(before.end_ms <= after.start_ms for before, after in pairwise(segments))
    assert groups[-1].audio_done_ms == groups[-1].audio_total_ms == duration_ms


def test_progress_grows_and_the_first_group_is_small(speech: Path) -> None:
    groups = run(speech)
    assert len(groups) >= 3
    assert groups[0].checkpoint["windows_done"] == 1
    assert all(a.audio_done_ms < b.audio_done_ms for a, b in pairwise(groups))
    assert all(group.audio_total_ms == len(BLOCKS) * 100 for group in groups)


def test_every_checkpoint_yields_exactly_the_remaining_groups(speech: Path) -> None:
    groups = run(speech)
    for done, group in enumerate(groups[:-1], start=1):
        rest = list(
            transcribe(
                speech,
                model=Model(),
                finder=ScriptedDetector(),
                language=None,
                checkpoint=json.loads(json.dumps(group.checkpoint)),
            )
        )
        assert rest == groups[done:]


def test_the_last_checkpoint_yields_one_empty_group(speech: Path) -> None:
    last = run(speech)[-1]
    rest = list(
        transcribe(
            speech,
            model=Model(),
            finder=ScriptedDetector(),
            language=None,
            checkpoint=last.checkpoint,
        )
    )
    assert [group.segments for group in rest] == [()]
    assert rest[0].audio_done_ms == last.audio_done_ms


def test_each_window_is_encoded_once(speech: Path) -> None:
    model = Model()
    groups = run(speech, model=model)
    assert model.encoded == groups[-1].checkpoint["windows_done"]


def test_the_language_is_detected_once_and_kept(speech: Path) -> None:
    model = Model()
    groups = run(speech, model=model)
    assert model.detections == 1
    assert {group.language for group in groups} == {LanguageGuess("en", 0.75)}


def test_the_language_is_that_of_most_speech_in_the_first_group(
    speech: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wavering(Model):
        def detect_language(self, windows: Sequence[Window], encoded: object) -> LanguageGuess:
            super().detect_language(windows, encoded)
            return LanguageGuess("en", 1.0) if self.detections == 2 else LanguageGuess("zh", 0.5)

    monkeypatch.setattr(two_pass, "MIN_GROUP_WINDOWS", 4)
    model = Wavering()
    first = run(speech, model=model)[0]
    assert model.detections == 4
    assert first.language is not None
    assert first.language.language == "zh"
    assert 0.3 < first.language.probability < 0.45


def test_a_chosen_language_is_not_detected(speech: Path) -> None:
    model = Model()
    groups = run(speech, model=model, language="en")
    assert model.detections == 0
    assert groups[0].language == LanguageGuess("en", 1.0)


def test_an_unknown_language_is_refused_before_any_work(speech: Path) -> None:
    model = Model()
    with pytest.raises(UnsupportedLanguageError):
        run(speech, model=model, language="tlh")
    assert model.encoded == 0


def test_silence_is_a_complete_empty_transcript_without_language(tmp_path: Path) -> None:
    path = tmp_path / "source.bin"
    path.write_bytes(wav_bytes(np.zeros(40 * SAMPLE_RATE, np.float32)))
    model = Model()
    (group,) = run(path, model=model)
    assert group.segments == ()
    assert group.language is None
    assert group.audio_done_ms == group.audio_total_ms == 40_000
    assert model.encoded == model.detections == 0


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "source.bin"
    path.write_text("minutes of the meeting " * 50)
    with pytest.raises(NotAudioError):
        run(path)


def test_work_stops_between_batches(speech: Path) -> None:
    model = Model()
    with pytest.raises(CancelledError):
        list(
            transcribe(
                speech,
                model=model,
                finder=ScriptedDetector(),
                language=None,
                should_stop=lambda: model.encoded >= 2,
            )
        )
    assert model.encoded == 2


def test_work_stops_while_silence_is_read(tmp_path: Path) -> None:
    path = tmp_path / "source.bin"
    path.write_bytes(wav_bytes(np.zeros(100 * SAMPLE_RATE, np.float32)))
    asked = iter([False, True])
    with pytest.raises(CancelledError):
        list(
            transcribe(
                path,
                model=Model(),
                finder=ScriptedDetector(),
                language=None,
                should_stop=lambda: next(asked),
            )
        )


class Forgetful(Model):
    """Passes over all but the first and last words of a long window."""

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        language: str,
        options: DecodeOptions,
    ) -> list[list[Segment]]:
        heard = super().decode(windows, encoded, language=language, options=options)
        return [
            [replace(one, words=(*one.words[:3], *one.words[-3:])) for one in segments]
            if len(window.samples) > 20 * SAMPLE_RATE
            else segments
            for window, segments in zip(windows, heard, strict=True)
        ]


def test_speech_that_the_model_passed_over_is_heard_again(speech: Path) -> None:
    assert text(run(speech, model=Forgetful())) == script_text(BLOCKS)


class Deaf(Model):
    """Never hears more than three words of a window."""

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        language: str,
        options: DecodeOptions,
    ) -> list[list[Segment]]:
        heard = super().decode(windows, encoded, language=language, options=options)
        return [[replace(one, words=one.words[:1]) for one in segments] for segments in heard]


def test_a_window_is_heard_again_once_only(speech: Path) -> None:
    model = Deaf()
    groups = run(speech, model=model)
    windows = groups[-1].checkpoint["windows_done"]
    assert model.encoded == 3 * windows


class Listening(ScriptedDetector):
    """Notes how far the reader is ahead of what it hands on."""

    def __init__(self) -> None:
        self.read = 0

    def speech_probabilities(self, samples: Iterable[FloatSamples]) -> Iterator[float]:
        def counted() -> Iterator[FloatSamples]:
            for block in samples:
                self.read += len(block)
                yield block

        return super().speech_probabilities(counted())


def test_a_recording_is_read_as_its_groups_need_it(speech: Path) -> None:
    finder = Listening()
    groups = transcribe(speech, model=Model(), finder=finder, language=None)
    first = next(groups)
    assert finder.read < (first.audio_done_ms / 1000 + 35) * SAMPLE_RATE
