"""A recording to text in groups, each of which anybody may go on from."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

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
from asr_engine.batch import ahead, two_pass
from asr_engine.batch.passes import LOOKS_ON
from asr_engine.batch.two_pass import GroupResult, Pass, TwoPassOptions, refine_windows, transcribe
from asr_engine.errors import (
    BrokenAudioError,
    CancelledError,
    NotAudioError,
    UnsupportedLanguageError,
)
from asr_engine.ports import Candidate, DecodeOptions, Onward, Window, WindowSpan
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
    monkeypatch.setattr(two_pass, "FIRST_GROUP_WINDOWS", 1)


class Model(ScriptedBatchModel):
    """One window a batch; counts its calls."""

    batch_windows = 1

    def __init__(self) -> None:
        self.encoded = 0
        self.detections = 0

    def encode(self, windows: Sequence[Window], *, room_samples: int = 0) -> object:
        self.encoded += len(windows)
        return super().encode(windows, room_samples=room_samples)

    def language_scores(self, windows: Sequence[Window], encoded: object) -> list[dict[str, float]]:
        self.detections += 1
        return [{"en": 0.75, "de": 0.25} for _ in windows]


def run(
    path: Path,
    *,
    model: ScriptedBatchModel | None = None,
    options: TwoPassOptions | None = None,
    checkpoint: dict[str, Any] | None = None,
) -> list[GroupResult]:
    return list(
        transcribe(
            path,
            model=model or Model(),
            finder=ScriptedDetector(),
            options=options or TwoPassOptions(),
            checkpoint=checkpoint,
        )
    )


def drafts(path: Path, *, model: ScriptedBatchModel | None = None) -> list[GroupResult]:
    return run(path, model=model, options=TwoPassOptions(is_draft_only=True))


def text(groups: Iterable[GroupResult], pass_: Pass = Pass.REFINED) -> str:
    return " ".join(
        segment.text for group in groups if group.pass_ == pass_ for segment in group.segments
    )


@pytest.mark.parametrize("pass_", Pass)
def test_every_word_comes_once_and_in_order(speech: Path, pass_: Pass) -> None:
    assert text(run(speech), pass_) == script_text(BLOCKS)


def test_times_are_those_of_the_recording(speech: Path) -> None:
    places = {
        f"w{number}": index * 100 for index, number in enumerate(BLOCKS) if number is not None
    }
    for group in run(speech):
        for segment in group.segments:
            for word in segment.words:
                assert abs(word.start_ms - places[word.text]) <= 60


@pytest.mark.parametrize("pass_", Pass)
def test_segments_are_sorted_and_inside_the_recording(speech: Path, pass_: Pass) -> None:
    groups = [group for group in run(speech) if group.pass_ == pass_]
    segments = [segment for group in groups for segment in group.segments]
    duration_ms = len(BLOCKS) * 100
    assert all(0 <= s.start_ms < s.end_ms <= duration_ms for s in segments)
    assert all(before.end_ms <= after.start_ms for before, after in pairwise(segments))
    assert groups[-1].audio_done_ms == groups[-1].audio_total_ms == duration_ms


def test_a_refined_group_follows_its_draft(speech: Path) -> None:
    groups = run(speech)
    assert len(groups) >= 6
    assert [group.pass_ for group in groups] == list(Pass) * (len(groups) // 2)
    for draft, refined in zip(groups[::2], groups[1::2], strict=True):
        assert draft.audio_done_ms == refined.audio_done_ms
        assert draft.segments == refined.segments


def test_a_draft_alone_has_no_refined_groups(speech: Path) -> None:
    assert {group.pass_ for group in drafts(speech)} == {Pass.DRAFT}


def test_progress_grows_and_the_first_group_is_small(speech: Path) -> None:
    groups = drafts(speech)
    assert len(groups) >= 3
    assert groups[0].checkpoint["windows_done"] == 1
    assert all(a.audio_done_ms < b.audio_done_ms for a, b in pairwise(groups))
    assert all(group.audio_total_ms == len(BLOCKS) * 100 for group in groups)


@pytest.mark.parametrize("is_draft_only", [False, True])
def test_every_checkpoint_yields_exactly_the_remaining_results(
    speech: Path, *, is_draft_only: bool
) -> None:
    options = TwoPassOptions(is_draft_only=is_draft_only)
    groups = run(speech, options=options)
    for done, group in enumerate(groups[:-1], start=1):
        checkpoint = json.loads(json.dumps(group.checkpoint))
        assert run(speech, options=options, checkpoint=checkpoint) == groups[done:]


def test_the_last_checkpoint_yields_one_empty_group(speech: Path) -> None:
    last = run(speech)[-1]
    rest = run(speech, checkpoint=last.checkpoint)
    assert [group.segments for group in rest] == [(), ()]
    assert rest[-1].audio_done_ms == last.audio_done_ms


def test_each_window_is_encoded_once_for_both_passes(speech: Path) -> None:
    model = Model()
    groups = run(speech, model=model)
    assert model.encoded == groups[-1].checkpoint["windows_done"]


def test_words_of_a_text_that_stays_are_timed_once(speech: Path) -> None:
    class Timed(Model):
        timed = 0

        def time_words(self, *arguments: Any, **languages: Any) -> list[list[Segment]]:
            self.timed += 1
            return super().time_words(*arguments, **languages)

    model = Timed()
    groups = run(speech, model=model)
    assert model.timed == groups[-1].checkpoint["windows_done"]


def test_the_language_that_was_detected_is_kept(speech: Path) -> None:
    groups = run(speech)
    assert {group.language for group in groups} == {LanguageGuess("en", 0.75)}
    assert {segment.language for group in groups for segment in group.segments} == {"en"}


class Mixed(Model):
    """Hears German in every other window of a batch."""

    languages = ("en", "de")
    batch_windows = 4

    def __init__(self) -> None:
        super().__init__()
        self.read_in: list[str] = []

    def language_scores(self, windows: Sequence[Window], encoded: object) -> list[dict[str, float]]:
        self.detections += 1
        return [{"en": 0.2, "de": 0.8} if n % 2 else {"en": 0.9, "de": 0.1} for n in range(4)][
            : len(windows)
        ]

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        self.read_in += languages
        return super().decode(windows, encoded, languages=languages, options=options)


def test_the_language_is_that_of_most_speech_in_the_first_group(
    speech: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_pass, "FIRST_GROUP_WINDOWS", 4)
    model = Mixed()
    first = drafts(speech, model=model)[0]
    assert first.language is not None
    assert first.language.language == "en"
    assert 0.5 < first.language.probability < 0.65
    assert set(model.read_in) == {"en"}


def test_where_languages_mix_each_window_is_read_in_its_own(
    speech: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_pass, "FIRST_GROUP_WINDOWS", 4)
    model = Mixed()
    groups = run(speech, model=model, options=TwoPassOptions(mixes_languages=True))
    assert model.read_in[:8] == ["en", "de", "en", "de"] * 2
    assert all(group.audio_done_ms < 45_000 for group in groups[:2])
    assert [segment.language for segment in groups[1].segments][:1] == ["en"]
    assert {segment.language for segment in groups[1].segments} == {"en", "de"}


class Turning(Mixed):
    """Hears English in the first windows, and certainly German in what follows."""

    batch_windows = 1

    def language_scores(self, windows: Sequence[Window], encoded: object) -> list[dict[str, float]]:
        self.detections += 1
        return [
            {"en": 0.8, "de": 0.2}
            if window.start_sample < 20 * SAMPLE_RATE
            else {"en": 0.0625, "de": 0.9375}
            for window in windows
        ]


def test_what_is_certainly_in_another_language_is_read_in_it(speech: Path) -> None:
    model = Turning()
    segments = [segment for group in drafts(speech, model=model) for segment in group.segments]
    assert {one.language for one in segments if one.start_ms < 20_000} == {"en"}
    assert {one.language for one in segments if one.start_ms > 50_000} == {"de"}


def test_a_recording_s_language_is_that_of_most_speech_so_far(speech: Path) -> None:
    groups = drafts(speech, model=Turning())
    assert groups[0].language == LanguageGuess("en", 0.8)
    assert groups[-1].language == LanguageGuess("de", 0.9375)


def test_a_chosen_language_is_that_of_all_windows(speech: Path) -> None:
    groups = run(speech, model=Turning(), options=TwoPassOptions(language="en"))
    assert {segment.language for group in groups for segment in group.segments} == {"en"}
    assert groups[-1].language == LanguageGuess("en", 1.0)


@pytest.mark.parametrize("mixes_languages", [False, True], ids=["detected", "mixed"])
@pytest.mark.parametrize("is_draft_only", [False, True], ids=["both passes", "draft"])
def test_every_checkpoint_knows_what_languages_were_heard(
    speech: Path, *, is_draft_only: bool, mixes_languages: bool
) -> None:
    options = TwoPassOptions(is_draft_only=is_draft_only, mixes_languages=mixes_languages)
    groups = run(speech, model=Turning(), options=options)
    for done, group in enumerate(groups[:-1], start=1):
        # A database may sort the keys.
        checkpoint = json.loads(json.dumps(group.checkpoint, sort_keys=True))
        rest = run(speech, model=Turning(), options=options, checkpoint=checkpoint)
        assert rest == groups[done:]


def test_a_checkpoint_of_an_earlier_version_is_gone_on_from(speech: Path) -> None:
    groups = run(speech)
    checkpoint = dict(groups[1].checkpoint)
    del checkpoint["spoken_samples"]
    rest = run(speech, checkpoint=checkpoint)
    assert [group.segments for group in rest] == [group.segments for group in groups[2:]]


def test_an_unsure_window_is_read_in_the_language_of_the_recording(speech: Path) -> None:
    class Unsure(Mixed):
        def language_scores(
            self, windows: Sequence[Window], encoded: object
        ) -> list[dict[str, float]]:
            return [{"en": 0.35, "de": 0.4} for _ in windows]

    model = Unsure()
    run(speech, model=model, options=TwoPassOptions(language="en", mixes_languages=True))
    assert set(model.read_in) == {"en"}


def test_a_chosen_language_is_not_detected(speech: Path) -> None:
    model = Model()
    groups = run(speech, model=model, options=TwoPassOptions(language="en"))
    assert model.detections == 0
    assert groups[0].language == LanguageGuess("en", 1.0)


def test_an_unknown_language_is_refused_before_any_work(speech: Path) -> None:
    model = Model()
    with pytest.raises(UnsupportedLanguageError):
        run(speech, model=model, options=TwoPassOptions(language="tlh"))
    assert model.encoded == 0


def test_silence_is_a_complete_empty_transcript_without_language(tmp_path: Path) -> None:
    path = tmp_path / "source.bin"
    path.write_bytes(wav_bytes(np.zeros(40 * SAMPLE_RATE, np.float32)))
    model = Model()
    groups = run(path, model=model)
    assert [(group.pass_, group.segments) for group in groups] == [
        (Pass.DRAFT, ()),
        (Pass.REFINED, ()),
    ]
    assert groups[-1].language is None
    assert groups[-1].audio_done_ms == groups[-1].audio_total_ms == 40_000
    assert model.encoded == model.detections == 0


class Beside(Model):
    """Works on a device of its own, so that the recording is read ahead."""

    works_beside = True


def readers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "read-ahead"]


def test_reading_ahead_changes_nothing(speech: Path) -> None:
    assert run(speech, model=Beside()) == run(speech)
    assert readers() == []


def test_reading_ahead_stops_with_the_work(speech: Path) -> None:
    groups = transcribe(speech, model=Beside(), finder=ScriptedDetector(), options=TwoPassOptions())
    next(groups)
    del groups
    assert readers() == []


def test_a_fault_of_a_reader_that_is_ahead_is_told(
    speech: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> Iterator[FloatSamples]:
        yield np.zeros(SAMPLE_RATE, np.float32)
        raise BrokenAudioError

    monkeypatch.setattr(two_pass, "decode_planned", fail)
    with pytest.raises(BrokenAudioError):
        run(speech, model=Beside())
    assert readers() == []


def test_work_stops_while_a_reader_is_ahead_in_silence(
    speech: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "CHECK_S", 0.001)

    def endless(*arguments: Any) -> Iterator[FloatSamples]:
        while True:
            yield np.zeros(SAMPLE_RATE, np.float32)

    monkeypatch.setattr(two_pass, "decode_planned", endless)
    with pytest.raises(CancelledError):
        list(
            transcribe(
                speech,
                model=Beside(),
                finder=ScriptedDetector(),
                options=TwoPassOptions(),
                should_stop=lambda: True,
            )
        )
    assert readers() == []


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
                options=TwoPassOptions(),
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
                options=TwoPassOptions(),
                should_stop=lambda: next(asked),
            )
        )


def only(candidates: list[list[Candidate]], *kept: slice) -> list[list[Candidate]]:
    """Those with the words of these places alone."""
    return [
        [
            replace(one, tokens=tuple(word for part in kept for word in one.tokens[part]))
            for one in heard
            if isinstance(one.tokens, tuple)
        ]
        for heard in candidates
    ]


class Forgetful(Model):
    """Passes over all but the first and last words of a window, unless it goes on from a place."""

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        heard = super().decode(windows, encoded, languages=languages, options=options)
        return only(heard, slice(3), slice(-3, None))


def test_speech_that_a_draft_passed_over_is_heard_by_the_refine_pass(speech: Path) -> None:
    groups = run(speech, model=Forgetful())
    assert len(text(groups, Pass.DRAFT)) < len(script_text(BLOCKS))
    assert text(groups) == script_text(BLOCKS)


def test_speech_that_a_draft_alone_passed_over_is_heard_at_once(speech: Path) -> None:
    assert text(drafts(speech, model=Forgetful()), Pass.DRAFT) == script_text(BLOCKS)


class Deaf(Forgetful):
    """Hears nothing more of a window wherever it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.went_on = 0

    def decode_onward(
        self,
        windows: Sequence[Window],
        encoded: object,
        onwards: Sequence[Onward],
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        self.went_on += len(windows)
        return [[] for _ in windows]


def test_what_yields_nothing_more_is_heard_on_a_few_times_only(speech: Path) -> None:
    model = Deaf()
    groups = run(speech, model=model)
    windows = groups[-1].checkpoint["windows_done"]
    assert model.encoded == windows
    # Each by a beam and greedily.
    assert windows <= model.went_on <= 2 * LOOKS_ON * windows
    assert text(groups) == text(groups, Pass.DRAFT)


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
    groups = transcribe(speech, model=Model(), finder=finder, options=TwoPassOptions())
    first = next(groups)
    assert finder.read < (first.audio_done_ms / 1000 + 35) * SAMPLE_RATE


def test_windows_by_themselves_are_refined_each_for_itself() -> None:
    """What a live session's utterances are heard again by."""
    windows = []
    for start, first in ((0, 10), (480_000, 20), (160_000, 30)):
        samples = encode_blocks(range(first, first + 5))
        windows.append(Window(start, samples, (WindowSpan(0, start, 0, len(samples)),)))
    heard = refine_windows(Model(), windows, TwoPassOptions(language="en"))
    assert [[segment.text for segment in segments] for segments in heard] == [
        ["w10 w11 w12 w13 w14"],
        ["w20 w21 w22 w23 w24"],
        ["w30 w31 w32 w33 w34"],
    ]
    assert [segments[0].start_ms for segments in heard] == [0, 30_000, 10_000]
