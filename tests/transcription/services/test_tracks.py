"""Which track is transcribed and played, and who says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from asr_engine.results import LanguageGuess
from asr_engine.tracks import ChannelMode, ChannelPlan, TrackSurvey
from tests.fakes.recordings import claim_of, make_job, make_recording, progress
from transcription.errors import ConflictError, InvalidInputError
from transcription.models import Job, JobState, Recording, RevisionKind
from transcription.services import jobs, tracks, transcripts
from transcription.services.job_queue import Claim
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


def hear(language: str, kind: RevisionKind = RevisionKind.DRAFT) -> Claim:
    """The job whose turn it is hears its first words, in `language`."""
    claim = claim_of()
    heard = progress(f"said in {language}", kind=kind)
    jobs.store_progress(claim=claim, progress=replace(heard, language=LanguageGuess(language, 0.9)))
    return claim


def finish(language: str) -> None:
    claim = hear(language)
    refined = progress(f"said in {language}", kind=RevisionKind.REFINED)
    jobs.store_progress(
        claim=claim, progress=replace(refined, language=LanguageGuess(language, 0.9))
    )
    jobs.finish_job(claim=claim, model_name="scripted")


def choose(recording: Recording, track: int = 1) -> Job:
    return tracks.choose_track(recording=recording, track=track, requested_by=recording.owner)


def state_of(recording: Recording) -> tuple[int | None, str, str, str]:
    """What is said to be transcribed, its language, the text that is shown, and what plays."""
    recording.refresh_from_db()
    revision = transcripts.current_revision(recording)
    text = " ".join(found.text for found in transcripts.segments_of(revision)) if revision else ""
    return recording.track, recording.language, text, recording.player_name


@pytest.fixture
def transcribed(recording: Recording) -> Recording:
    """The first track has been transcribed, in English."""
    jobs.submit_job(recording=recording, requested_by=recording.owner)
    finish("en")
    return recording


def test_a_choice_is_the_jobs_until_its_text_is_shown(
    transcribed: Recording,
    sent: list[tuple[str, ...]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    before = state_of(transcribed)
    assert before == (None, "en", "said in en", "player-0.m4a")
    job = choose(transcribed)
    assert tracks.plan_for(transcribed, chosen=job.track).track == 1
    claim = hear("de")
    assert state_of(transcribed) == before
    assert not tracks.needs_player(transcribed)
    with django_capture_on_commit_callbacks(execute=True):
        jobs.store_progress(
            claim=claim,
            progress=replace(
                progress("said in de", kind=RevisionKind.REFINED), language=LanguageGuess("de", 0.9)
            ),
        )
        assert state_of(transcribed) == before
        jobs.finish_job(claim=claim, model_name="scripted")
    assert state_of(transcribed) == (1, "de", "said in de", "player-0.m4a")
    assert sent.count(("transcription.make_player", str(transcribed.id))) == 1
    assert tracks.needs_player(transcribed)


@pytest.mark.parametrize("is_begun", [False, True], ids=["waiting", "begun"])
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["failed", "cancelled"])
def test_a_choice_that_comes_to_nothing_leaves_all_as_it_was(
    transcribed: Recording, *, is_begun: bool, is_cancelled: bool
) -> None:
    before = state_of(transcribed)
    job = choose(transcribed)
    claim = hear("de") if is_begun else claim_of()
    if is_cancelled:
        jobs.cancel_job(job=job, cancelled_by=transcribed.owner)
        jobs.end_cancelled_job(claim=claim)
    else:
        jobs.fail_attempt(claim=claim, code="x", problem="X.", is_retryable=False)
    assert state_of(transcribed) == before
    assert tracks.plan_for(transcribed).track == 0
    tracks.ask_for_players()
    assert not tracks.needs_player(transcribed)


def test_what_failed_is_tried_again_with_its_track(transcribed: Recording) -> None:
    choose(transcribed)
    jobs.fail_attempt(claim=claim_of(), code="x", problem="X.", is_retryable=False)
    again = jobs.retry_job(recording=transcribed, requested_by=transcribed.owner)
    assert again.track == 1
    jobs.cancel_job(job=again, cancelled_by=transcribed.owner)
    later = jobs.retry_job(recording=transcribed, requested_by=transcribed.owner)
    assert later.track is None  # a cancelled choice is no wish


def test_the_track_follows_text_that_is_shown_while_it_is_written(recording: Recording) -> None:
    """Where there is no whole transcript, the first words of the new track are shown at once."""
    choose(recording)
    hear("de")
    assert state_of(recording) == (1, "de", "said in de", "player-0.m4a")
    assert tracks.needs_player(recording)


def test_a_track_without_speech_takes_nothing_away(transcribed: Recording) -> None:
    before = state_of(transcribed)
    job = choose(transcribed)
    jobs.finish_job(claim=claim_of(), model_name="scripted")
    assert state_of(transcribed) == before
    assert transcribed.notice == jobs.TRACK_STANDS_NOTICE
    job.refresh_from_db()
    assert job.state == JobState.DONE


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


def test_the_player_follows_the_text(recording: Recording) -> None:
    choose(recording)
    hear("de")
    recording.refresh_from_db()
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
    choose(recording)
    hear("de")
    make_recording(alice)
    recording.refresh_from_db()
    sent.clear()
    tracks.ask_for_players()
    assert sent == [("transcription.make_player", str(recording.id))]
    tracks.store_player(recording=recording, audio=SECOND)
    sent.clear()
    tracks.ask_for_players()
    assert sent == []


def test_another_tracks_sound_is_not_played_beside_the_text(recording: Recording) -> None:
    """What cannot be played is not asked for again, but can be once more chosen."""
    choose(recording)
    hear("de")
    recording.refresh_from_db()
    assert tracks.store_no_player(recording=recording)
    recording.refresh_from_db()
    assert (recording.track, recording.player_path.exists()) == (1, False)
    assert not tracks.needs_player(recording)
    recording.track = 0
    assert tracks.needs_player(recording)


def test_removed_audio_needs_no_player(recording: Recording) -> None:
    recording.track, recording.audio_removed_at = 1, timezone.now()
    assert not tracks.needs_player(recording)
