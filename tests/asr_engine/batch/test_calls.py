"""A call whose sides were recorded apart, through both passes: who said what, once, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asr_engine.backends.scripted import (
    ScriptedBatchModel,
    ScriptedDetector,
    encode_blocks,
    script_text,
)
from asr_engine.batch import two_pass
from asr_engine.batch.channels import survey
from asr_engine.batch.two_pass import GroupResult, Pass, TwoPassOptions, transcribe
from asr_engine.results import Segment
from asr_engine.tracks import ChannelMode, ChannelPlan, plan_of
from tests.fakes.containers import write_container

Blocks = list[int | None]

TURN = 40
"""Blocks of 100 ms in which one side speaks."""
LEFT_FIRST, RIGHT_FIRST = 0x1111, 0x8888
"""No tone of the one's words is among the other's."""


def side(first: int, *, speaks_in: Iterable[bool]) -> Blocks:
    """A turn of words, counted from `first` on, or of silence, for each flag."""
    blocks: Blocks = []
    number = first
    for speaks in speaks_in:
        words = list(range(number, number + TURN - 10)) if speaks else []
        blocks += [*words, *[None] * (TURN - len(words))]
        number += len(words)
    return blocks


LEFT = side(LEFT_FIRST, speaks_in=[index % 2 == 0 or index == 9 for index in range(30)])
RIGHT = side(RIGHT_FIRST, speaks_in=[index % 2 == 1 for index in range(30)])
EACH = TwoPassOptions(plan=ChannelPlan(0, ChannelMode.EACH))


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes in turns; in the tenth both speak."""
    sound = np.stack([encode_blocks(LEFT), encode_blocks(RIGHT)])
    path = tmp_path_factory.mktemp("call") / "source.bin"
    return write_container(path, sound, container="flac", codec="flac", layout="stereo")


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_pass, "FIRST_GROUP_WINDOWS", 1)


class Model(ScriptedBatchModel):
    batch_windows = 1


def run(path: Path, checkpoint: dict[str, Any] | None = None) -> list[GroupResult]:
    return list(
        transcribe(
            path, model=Model(), finder=ScriptedDetector(), options=EACH, checkpoint=checkpoint
        )
    )


def segments_of(groups: Iterable[GroupResult], pass_: Pass) -> list[Segment]:
    return [segment for group in groups if group.pass_ is pass_ for segment in group.segments]


def test_a_call_is_known_as_one(call: Path) -> None:
    assert plan_of(survey(call, finder=ScriptedDetector())) == EACH.plan


@pytest.mark.parametrize("pass_", Pass)
def test_each_side_says_its_own_words_once(call: Path, pass_: Pass) -> None:
    segments = segments_of(run(call), pass_)
    for label, blocks in (("left", LEFT), ("right", RIGHT)):
        said = " ".join(segment.text for segment in segments if segment.speaker == label)
        assert said == script_text(blocks)
    assert {segment.speaker for segment in segments} == {"left", "right"}


def test_turns_come_in_the_order_in_which_they_were_spoken(call: Path) -> None:
    segments = segments_of(run(call), Pass.REFINED)
    assert segments == sorted(segments, key=lambda segment: segment.start_ms)
    turns = [speaker for speaker, _ in groupby(segment.speaker for segment in segments)]
    assert turns[:8] == ["left", "right"] * 4
    assert turns[-18:] == ["left", "right"] * 9
    assert all(0 <= segment.start_ms < segment.end_ms <= len(LEFT) * 100 for segment in segments)


def test_a_successor_yields_exactly_the_rest(call: Path) -> None:
    groups = run(call)
    assert len(groups) >= 6
    for done, group in enumerate(groups[:-1], start=1):
        assert run(call, json.loads(json.dumps(group.checkpoint))) == groups[done:]


def test_progress_only_grows_and_reaches_the_end(call: Path) -> None:
    groups = run(call)
    done = [group.audio_done_ms for group in groups]
    assert done == sorted(done)
    assert done[-1] == groups[-1].audio_total_ms == len(LEFT) * 100


def test_a_channel_may_be_heard_alone(call: Path) -> None:
    options = replace(EACH, plan=ChannelPlan(0, ChannelMode.RIGHT))
    groups = transcribe(call, model=Model(), finder=ScriptedDetector(), options=options)
    segments = segments_of(groups, Pass.REFINED)
    assert " ".join(segment.text for segment in segments) == script_text(RIGHT)
    assert {segment.speaker for segment in segments} == {None}
