"""Which track is transcribed and played, and who says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from asr_engine.tracks import ChannelMode, ChannelPlan, TrackSurvey
from tests.fakes.recordings import claim_of, make_job, make_recording
from transcription.errors import ConflictError, InvalidInputError
from transcription.models import Job, Recording
from transcription.services import tracks
from transcription.services.uploads import CheckedAudio
from webapp.accounts.models import User

VIDEO = TrackSurvey(
    index=0, channels=1, heard_ms=60_000, speech_ms=(9_000,), level_db=(-20,), is_default=True
)
ROOM = replace(VIDEO, index=1, is_default=False)
TRACKS = [VIDEO.as_json(), ROOM.as_json()]
SECOND = CheckedAudio(
    duration_ms=90_000,
    container="matroska",
    codec="opus",
    player_name="player-1.webm",
    media_type="audio/webm",
    is_damaged=False,
)


@pytest.fixture
def recording(alice: User) -> Recording:
    return make_recording(alice, tracks=TRACKS, player_name="player-0.m4a")


def test_the_plan_follows_what_was_heard_and_chosen(alice: User) -> None:
    assert tracks.plan_for(make_recording(alice)) == ChannelPlan()
    call = replace(VIDEO, channels=2, speech_ms=(1, 1), are_channels_different=True)
    recording = make_recording(alice, tracks=[call.as_json(), ROOM.as_json()])
    recording.refresh_from_db()
    assert tracks.plan_for(recording) == ChannelPlan(0, ChannelMode.EACH)
    recording.track = 1
    assert tracks.plan_for(recording) == ChannelPlan(1, ChannelMode.MIX)


def test_another_track_is_transcribed_and_gets_a_player(
    alice: User,
    recording: Recording,
    sent: list[tuple[str, ...]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        job = tracks.choose_track(recording=recording, track=1, requested_by=alice)
    recording.refresh_from_db()
    assert (recording.track, job.recording, job.requested_by) == (1, recording, alice)
    assert ("transcription.make_player", str(recording.id)) in sent
    assert tracks.needs_player(recording)


@pytest.mark.parametrize("track", [2, -1])
def test_a_track_that_is_not_there_is_refused(
    alice: User, recording: Recording, track: int
) -> None:
    with pytest.raises(InvalidInputError):
        tracks.choose_track(recording=recording, track=track, requested_by=alice)
    assert not Job.objects.exists()


def test_the_only_track_cannot_be_chosen(alice: User) -> None:
    alone = make_recording(alice, tracks=TRACKS[:1])
    with pytest.raises(InvalidInputError):
        tracks.choose_track(recording=alone, track=0, requested_by=alice)


def test_a_job_keeps_the_track_that_it_began_with(alice: User) -> None:
    job = make_job(alice, tracks=TRACKS)
    claim_of()
    with pytest.raises(ConflictError):
        tracks.choose_track(recording=job.recording, track=1, requested_by=alice)
    job.recording.refresh_from_db()
    assert job.recording.track is None


def test_the_player_follows_the_choice(alice: User, recording: Recording) -> None:
    tracks.choose_track(recording=recording, track=1, requested_by=alice)
    assert tracks.store_player(recording=recording, audio=SECOND)
    recording.refresh_from_db()
    assert (recording.player_name, recording.duration_ms) == ("player-1.webm", 90_000)
    assert not tracks.needs_player(recording)


def test_a_player_of_a_track_that_is_no_longer_chosen_is_not_taken(recording: Recording) -> None:
    recording.track = 1  # as it was when the player was begun
    assert not tracks.store_player(recording=recording, audio=SECOND)
    recording.refresh_from_db()
    assert recording.player_name == "player-0.m4a"


def test_a_lost_message_is_sent_again(
    alice: User,
    recording: Recording,
    sent: list[tuple[str, ...]],
) -> None:
    make_recording(alice)
    tracks.choose_track(recording=recording, track=1, requested_by=alice)
    tracks.ask_for_players()
    assert sent == [("transcription.make_player", str(recording.id))]
    tracks.store_player(recording=recording, audio=SECOND)
    sent.clear()
    tracks.ask_for_players()
    assert sent == []


def test_a_track_that_does_not_play_after_all_is_forgotten(
    alice: User, recording: Recording
) -> None:
    tracks.choose_track(recording=recording, track=1, requested_by=alice)
    tracks.forget_track(recording=recording)
    recording.refresh_from_db()
    assert recording.track is None
