"""Which audio track of a recording is transcribed, and whose choice that is.

What each track holds was found when the recording was checked. A choice waits in its job until the
transcript of that track is shown; then it is the recording's, and a chore makes a player of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from asr_engine.tracks import ChannelPlan, TrackSurvey, plan_of
from transcription.broadcast import recording_changed_on_commit
from transcription.errors import InvalidInputError
from transcription.models import Job, Recording
from transcription.queue import Task, send
from transcription.services import jobs
from transcription.services.uploads import CheckedAudio
from webapp.accounts.models import User

PLAYER_EXPIRY_S: Final = 30.0
"""An unread message for a player is dropped after this long: the sweep sends another."""


def surveys_of(recording: Recording) -> list[TrackSurvey]:
    """What was heard in each track; empty where there is nothing to choose."""
    return [TrackSurvey.from_json(track) for track in recording.tracks]


def plan_for(recording: Recording, *, chosen: int | None = None) -> ChannelPlan:
    """Which track is transcribed, and how: the `chosen` one, else that of the transcript."""
    return plan_of(surveys_of(recording), recording.track if chosen is None else chosen)


def choose_track(*, recording: Recording, track: int, requested_by: User) -> Job:
    """Transcribe another track, from the start. The recording has it when its text is shown.

    Raises InvalidInputError for one that is not there, ConflictError while a job is under way.
    """
    indices = {survey.index for survey in surveys_of(recording)}
    if len(indices) < 2 or track not in indices:
        raise InvalidInputError("This recording has no such audio track. Nothing was changed.")
    return jobs.retry_job(recording=recording, requested_by=requested_by, track=track)


def needs_player(recording: Recording) -> bool:
    """Whether the player plays another track than the one that was chosen."""
    return (
        recording.track is not None
        and recording.audio_removed_at is None
        and f"-{recording.track}." not in recording.player_name  # see `batch.player`
    )


def store_player(*, recording: Recording, audio: CheckedAudio) -> bool:
    """Play what was made of the chosen track. False where it is no longer the chosen one."""
    return _play(
        recording,
        player_name=audio.player_name,
        media_type=audio.media_type,
        duration_ms=audio.duration_ms,
        codec=audio.codec,
    )


def store_no_player(*, recording: Recording) -> bool:
    """The chosen track cannot be played after all, and another one's sound is not that of the
    text. False where it is no longer the chosen one.
    """
    return _play(recording, player_name=f"player-{recording.track}.none")


def _play(recording: Recording, **fields: object) -> bool:
    chosen = Recording.objects.filter(id=recording.id, track=recording.track)
    is_stored = bool(chosen.update(**fields))
    if is_stored:
        recording_changed_on_commit(recording.id)  # an open page plays the new one
    return is_stored


def ask_for_players() -> None:
    """Ask again for players whose message was lost."""
    for recording_id in _without_player(
        Recording.objects.exclude(track=None).filter(audio_removed_at=None)
    ):
        send(Task.MAKE_PLAYER, str(recording_id), expires_s=PLAYER_EXPIRY_S)


def _without_player(chosen: Iterable[Recording]) -> list[UUID]:
    return [recording.id for recording in chosen if needs_player(recording)]
