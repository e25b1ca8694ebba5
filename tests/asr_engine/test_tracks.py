"""The plan that follows from what was heard in each track."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asr_engine.tracks import ChannelMode, ChannelPlan, TrackSurvey, plan_of

MONO = TrackSurvey(
    index=0, channels=1, heard_ms=60_000, speech_ms=(20_000,), level_db=(-20,), is_default=True
)
STEREO = replace(MONO, channels=2, speech_ms=(9_000, 8_000), level_db=(-20, -22))


def test_a_recording_without_a_survey_is_mixed_from_its_default_track() -> None:
    assert plan_of([]) == ChannelPlan(None, ChannelMode.MIX)
    assert plan_of([], 3) == ChannelPlan(None, ChannelMode.MIX)


def test_the_default_track_is_taken_while_somebody_speaks_in_it() -> None:
    other = replace(MONO, index=1, speech_ms=(50_000,), is_default=False)
    assert plan_of([MONO, other]).track == 0
    assert plan_of([replace(other, index=0), replace(MONO, index=1)]).track == 1


def test_a_default_track_without_speech_gives_way_to_one_with_speech() -> None:
    music = replace(MONO, speech_ms=(0,))
    little = replace(MONO, index=1, speech_ms=(900,), is_default=False)
    much = replace(little, index=2, speech_ms=(9_000,))
    assert plan_of([music, little, much]).track == 2


def test_a_silent_track_gives_way_to_one_that_sounds() -> None:
    silent = replace(MONO, speech_ms=(0,), level_db=(-120,))
    sounding = replace(MONO, index=1, speech_ms=(0,), is_default=False)
    assert plan_of([silent, sounding]).track == 1
    assert plan_of([silent, replace(silent, index=1, is_default=False)]).track == 0


def test_what_somebody_has_chosen_is_taken_if_it_is_there() -> None:
    other = replace(MONO, index=1, speech_ms=(0,), is_default=False)
    assert plan_of([MONO, other], 1).track == 1
    assert plan_of([MONO, other], 7).track == 0


def test_different_channels_are_heard_each_on_its_own() -> None:
    plan = plan_of([replace(STEREO, are_channels_different=True)])
    assert plan == ChannelPlan(0, ChannelMode.EACH)
    assert plan.labels == ("left", "right")
    assert plan_of([STEREO]).labels == ()


@pytest.mark.parametrize(
    ("speech_ms", "level_db", "mode"),
    [
        pytest.param((20_000, 0), (-24, -15), ChannelMode.LEFT, id="right"),
        pytest.param((0, 20_000), (-15, -24), ChannelMode.RIGHT, id="left"),
        pytest.param((20_000, 90), (-24, -15), ChannelMode.MIX, id="one says a word"),
    ],
)
def test_a_channel_that_only_disturbs_is_left_out_where_all_of_it_was_heard(
    speech_ms: tuple[int, int], level_db: tuple[int, int], mode: ChannelMode
) -> None:
    heard = replace(STEREO, speech_ms=speech_ms, level_db=level_db, is_heard_whole=True)
    assert plan_of([heard]).mode == mode


@pytest.mark.parametrize(
    ("speech_ms", "mode", "seldom"),
    [
        pytest.param((20_000, 0), ChannelMode.EACH, 1, id="nobody right"),
        pytest.param((0, 20_000), ChannelMode.EACH, 0, id="nobody left"),
        pytest.param((20_000, 400), ChannelMode.EACH, 1, id="a word right"),
        pytest.param((20_000, 500), ChannelMode.MIX, None, id="enough to compare"),
        pytest.param((1_200, 400), ChannelMode.MIX, None, id="little in both"),
        pytest.param((400, 0), ChannelMode.MIX, 1, id="hardly anything at all"),
        pytest.param((0, 0), ChannelMode.MIX, None, id="nothing"),
    ],
)
def test_who_speaks_seldom_is_heard_where_only_places_were(
    speech_ms: tuple[int, int], mode: ChannelMode, seldom: int | None
) -> None:
    sampled = replace(STEREO, speech_ms=speech_ms)
    assert plan_of([sampled]).mode == mode
    assert sampled.seldom_channel == seldom


def test_a_quiet_channel_stays_in_the_mix_lest_somebody_speaks_there_later() -> None:
    assert plan_of([replace(STEREO, speech_ms=(20_000, 0), level_db=(-20, -60))]).mode == (
        ChannelMode.MIX
    )
    assert plan_of([replace(STEREO, speech_ms=(0, 0))]).mode == ChannelMode.MIX


def test_a_survey_survives_being_stored() -> None:
    found = replace(STEREO, title="English", language="eng", are_channels_different=True)
    assert TrackSurvey.from_json(found.as_json() | {"speech_ms": [9_000, 8_000]}) == found
