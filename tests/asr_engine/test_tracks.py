"""The plan that follows from what was heard in each track."""

from __future__ import annotations

from dataclasses import replace

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


def test_a_channel_that_only_disturbs_is_left_out() -> None:
    timecode = replace(STEREO, speech_ms=(20_000, 0), level_db=(-24, -15))
    assert plan_of([timecode]).mode == ChannelMode.LEFT
    mirrored = replace(timecode, speech_ms=(0, 20_000), level_db=(-15, -24))
    assert plan_of([mirrored]).mode == ChannelMode.RIGHT


def test_a_quiet_channel_stays_in_the_mix_lest_somebody_speaks_there_later() -> None:
    assert plan_of([replace(STEREO, speech_ms=(20_000, 0), level_db=(-20, -60))]).mode == (
        ChannelMode.MIX
    )
    assert plan_of([replace(STEREO, speech_ms=(0, 0))]).mode == ChannelMode.MIX


def test_a_survey_survives_being_stored() -> None:
    found = replace(STEREO, title="English", language="eng", are_channels_different=True)
    assert TrackSurvey.from_json(found.as_json() | {"speech_ms": [9_000, 8_000]}) == found
