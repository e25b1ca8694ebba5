"""Live sessions: their states, their finals and marks, and how they become recordings.

Every write to a session goes through here. `seq` numbers the stored changes of one session and is
taken from the session's row in the transaction that stores the change, so it has no holes and a
viewer sees a lost event by it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Count, F, Sum
from django.utils import timezone

from asr_engine.protocol import EngineEvent, ViewerEvent
from transcription.errors import InvalidInputError, SessionEndedError, TooManySessionsError
from transcription.models import (
    LiveMark,
    LiveMarkKind,
    LiveSession,
    LiveState,
    LiveUtterance,
    Recording,
    RecordingSource,
    Visibility,
)
from transcription.services import jobs, retention, transcripts, webhooks
from transcription.services.sharing import hand_on_shares
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User
from webapp.config import site_settings

LIVE_TRANSITIONS: Final[dict[LiveState, tuple[LiveState, ...]]] = {
    LiveState.CREATED: (LiveState.LIVE, LiveState.ENDED),
    LiveState.LIVE: (LiveState.WAITING, LiveState.ENDING),
    LiveState.WAITING: (LiveState.LIVE, LiveState.ENDING),
    LiveState.ENDING: (LiveState.ENDED,),
    LiveState.ENDED: (),
}
"""From each state to those that may follow it."""

ACTIVE: Final = (LiveState.LIVE, LiveState.WAITING, LiveState.ENDING)
"""States in which the audio lies in the session's own folder and finals still change."""

OTHER_LANGUAGES: Final = 0.05
"""Share of what was spoken from which on a session's recording is heard in several languages."""

MAX_TITLE_CHARACTERS: Final = 300
MAX_UNSTARTED: Final = 50
UNSTARTED_FOR: Final = timedelta(hours=1)


def create_live_session(
    *,
    owner: User,
    title: str,
    language: str,
    mode_ms: int,
    visibility: Visibility,
    reference: str = "",
) -> LiveSession:
    """A session that waits for its first capture. An empty title becomes one with the date.

    `language` empty means detection, `mode_ms` 0 the engine's default; the engine judges both at
    admission. Raises InvalidInputError, TooManySessionsError.
    """
    _check_number_of(owner)
    title = " ".join(title.split()) or f"Live session, {timezone.localtime():%d %b %Y %H:%M}"
    if len(title) > MAX_TITLE_CHARACTERS:
        raise InvalidInputError(f"The title has more than {MAX_TITLE_CHARACTERS} characters.")
    if visibility not in Visibility.values:
        raise InvalidInputError("Choose who may read the captions.")
    if owner.speech_language != language:
        owner.speech_language = language
        owner.save(update_fields=["speech_language"])
    with transaction.atomic():
        session = LiveSession.objects.create(
            owner=owner,
            title=title,
            team=retention.usual_team_of(owner),
            reference=reference,
            language=language,
            mode_ms=mode_ms,
            visibility=visibility,
        )
        record_act(act=Act.CREATED, actor=owner, on=session)
    return session


def _check_number_of(owner: User) -> None:
    """Sessions of one person: those that run or wait, and those that never began, which cost only
    a row. (How many are captured at once is counted exactly when each begins.)"""
    most = site_settings().max_sessions_per_person
    own = LiveSession.objects.filter(owner=owner)
    if own.filter(state__in=(LiveState.LIVE, LiveState.WAITING)).count() >= most:
        raise TooManySessionsError.of_person(most)
    recent = timezone.now() - UNSTARTED_FOR
    if own.filter(state=LiveState.CREATED, created_at__gt=recent).count() >= most + MAX_UNSTARTED:
        raise TooManySessionsError("You have made very many sessions just now. Wait an hour.")


def move_live_session(session_id: uuid.UUID | str, to: LiveState, **fields: Any) -> bool:
    """Conditional UPDATE by the table; `fields` are written with it. False where it was refused."""
    sources = [state for state, targets in LIVE_TRANSITIONS.items() if to in targets]
    moved = LiveSession.objects.filter(id=session_id, state__in=sources).update(state=to, **fields)
    return moved == 1


def start_live_session(*, session: LiveSession) -> LiveSession:
    """A capture was admitted: the session is live, its clock starts with the first one.

    Harmless for a session that is live already. Raises SessionEndedError.
    """
    now = timezone.now()
    move_live_session(session.id, LiveState.LIVE)
    LiveSession.objects.filter(id=session.id, started_at=None).update(started_at=now)
    LiveSession.objects.filter(id=session.id).update(last_packet_at=now)
    session.refresh_from_db()
    if session.state != LiveState.LIVE:
        raise SessionEndedError
    return session


def end_live_session(*, session: LiveSession) -> LiveSession:
    """No more audio will come. The recorder sees this within a second and completes the session.

    Harmless for a session that has ended; one that never started ends at once.
    """
    if not move_live_session(session.id, LiveState.ENDING):
        LiveSession.objects.filter(id=session.id, state=LiveState.CREATED).update(
            state=LiveState.ENDED, ended_at=timezone.now()
        )
    session.refresh_from_db()
    return session


def delete_unstarted_session(*, session_id: uuid.UUID | str) -> None:
    """Harmless for a session that was live at any time."""
    LiveSession.objects.filter(id=session_id, state=LiveState.CREATED).delete()


def note_mode(*, session_id: uuid.UUID | str, mode_ms: int) -> None:
    """The latency mode that the speaker chose: every later stream of the session begins in it."""
    LiveSession.objects.filter(id=session_id).update(mode_ms=mode_ms)


def note_language(*, session_id: uuid.UUID | str, language: str) -> None:
    """The language that the speaker chose, or "" to detect it: for every later stream."""
    LiveSession.objects.filter(id=session_id).update(language=language)


def note_packet(*, session_id: uuid.UUID | str, at: datetime) -> None:
    """Remember that audio came until `at`: the time of grace counts from there."""
    LiveSession.objects.filter(id=session_id).update(last_packet_at=at)


def _take_seq(
    session_id: uuid.UUID | str, *, states: Sequence[LiveState] = tuple(LiveState)
) -> int | None:
    """Next number of a stored change, inside the caller's transaction; None without a session in
    one of `states`."""
    sessions = LiveSession.objects.filter(id=session_id, state__in=states)
    if not sessions.update(last_seq=F("last_seq") + 1):
        return None
    return LiveSession.objects.values_list("last_seq", flat=True).get(id=session_id)


def record_final(*, event: EngineEvent) -> LiveUtterance | None:
    """Store a final once. A second delivery returns what the first one stored.

    None where the session was deleted in the meantime. Raises ValueError for an id of none, or an
    event without the number of its utterance.
    """
    if event.utterance is None:
        raise ValueError("a final has the number of its utterance")
    session_id = uuid.UUID(event.session)
    with transaction.atomic():
        stored = LiveUtterance.objects.filter(
            session_id=session_id, utterance=event.utterance
        ).first()
        if stored is not None:
            return stored
        seq = _take_seq(session_id)
        if seq is None:
            return None
        final = LiveUtterance.objects.create(
            session_id=session_id,
            utterance=event.utterance,
            seq=seq,
            start_ms=event.start_ms,
            end_ms=event.end_ms,
            text=event.text,
            words=list(event.words),
            language=event.language or "",
            reason=event.reason,
        )
        webhooks.announce_final(final)
    return final


def record_refined(
    *, utterance_id: int, text: str, words: Sequence[dict[str, Any]]
) -> LiveUtterance | None:
    """Store once what the second pass heard, as a change of its session.

    Empty `text` says that it heard nothing better: readers need not be told. None where nothing
    changed for them: also for an utterance that had been heard already or is deleted, or whose
    session has ended and stands as a revision.
    """
    unheard = LiveUtterance.objects.filter(id=utterance_id, refined_at=None)
    if not text:
        unheard.update(refined_at=timezone.now())
        return None
    with transaction.atomic():
        stored = LiveUtterance.objects.filter(id=utterance_id).first()
        seq = None if stored is None else _take_seq(stored.session_id, states=ACTIVE)
        if stored is None or seq is None:
            return None
        if not unheard.update(
            seq=seq, refined_text=text, refined_words=list(words), refined_at=timezone.now()
        ):
            transaction.set_rollback(True)  # the number is of no change: it must not leave a hole
            return None
    stored.refresh_from_db()
    return stored


def record_mark(
    *,
    session_id: uuid.UUID | str,
    kind: LiveMarkKind,
    start_ms: int,
    end_ms: int,
    wall_at: datetime,
) -> LiveMark | None:
    """Store a gap, a pause or the close once. None where the session was deleted."""
    session_id = uuid.UUID(str(session_id))
    with transaction.atomic():
        stored = LiveMark.objects.filter(
            session_id=session_id, kind=kind, start_ms=start_ms
        ).first()
        if stored is not None:
            return stored
        seq = _take_seq(session_id)
        if seq is None:
            return None
        return LiveMark.objects.create(
            session_id=session_id,
            seq=seq,
            kind=kind,
            start_ms=start_ms,
            end_ms=end_ms,
            wall_at=wall_at,
        )


def record_clock(*, session_id: uuid.UUID | str, samples: int, clock: list[list[int]]) -> None:
    """`samples` on disk, and the [sample, epoch milliseconds] pairs that give the time of day."""
    LiveSession.objects.filter(id=session_id).update(samples=samples, clock=clock)


def record_heard(*, session_id: uuid.UUID | str) -> None:
    """The engine has said everything about a session that is ending: nothing more will come."""
    LiveSession.objects.filter(id=session_id, state=LiveState.ENDING, ended_at=None).update(
        ended_at=timezone.now()
    )


@dataclass(frozen=True, slots=True)
class StoredAudio:
    """The verified file of a finished session, already in its recording's folder."""

    duration_ms: int
    size_bytes: int
    container: str
    codec: str
    media_type: str
    player_name: str


def finish_live_session(
    *, session_id: uuid.UUID | str, audio: StoredAudio | None
) -> LiveSession | None:
    """An ending session becomes a recording with its live transcript and a job.

    The recording has the session's id, so that doing this again after a crash finds what the first
    time left. Without audio there is no recording. None where the session was deleted.
    """
    with transaction.atomic():
        session = LiveSession.objects.select_related("owner").filter(id=session_id).first()
        if session is None or session.state != LiveState.ENDING:
            return session
        end_ms = audio.duration_ms if audio else 0
        record_mark(
            session_id=session.id,
            kind=LiveMarkKind.CLOSED,
            start_ms=end_ms,
            end_ms=end_ms,
            wall_at=timezone.now(),
        )
        if audio is not None:
            _make_recording(session, audio)
        session.ended_at = session.ended_at or timezone.now()
        move_live_session(
            session.id, LiveState.ENDED, recording=session.recording, ended_at=session.ended_at
        )
        webhooks.announce_end(session, duration_ms=end_ms)
    session.refresh_from_db()
    return session


def _make_recording(session: LiveSession, audio: StoredAudio) -> None:
    recording = Recording.objects.create(
        id=session.id,
        owner=session.owner,
        title=session.title,
        source=RecordingSource.LIVE,
        is_organisation_wide=session.visibility == Visibility.ORGANISATION,
        team_id=session.team_id,
        requested_language=session.language,
        mixes_languages=_mixes_languages(session),
        duration_ms=audio.duration_ms,
        size_bytes=audio.size_bytes,
        container=audio.container,
        codec=audio.codec,
        media_type=audio.media_type,
        player_name=audio.player_name,
        recorded_at=session.started_at or session.created_at,
    )
    session.recording = recording
    session.save(update_fields=["recording"])
    hand_on_shares(session=session, recording=recording)
    made = {"by": "live session"}
    record_act(act=Act.CREATED, actor=session.owner, on=recording, detail=made)
    transcripts.store_live_revision(recording=recording, session=session)
    jobs.submit_job(recording=recording, requested_by=session.owner, language=session.language)


def _mixes_languages(session: LiveSession) -> bool:
    """Whether the captions were in more than one language: not for one utterance alone, nor for a
    few seconds of an hour, which may be mistakes."""
    spoken = (
        session.utterances.exclude(language="")
        .values("language")
        .annotate(ms=Sum(F("end_ms") - F("start_ms")), count=Count("id"))
        .order_by("-ms")
    )
    total_ms = sum(one["ms"] for one in spoken)
    other_ms = sum(one["ms"] for one in spoken[1:] if one["count"] > 1)
    return bool(other_ms > OTHER_LANGUAGES * total_ms)


# What viewers are told ---------------------------------------------------------------------------


def final_event(stored: LiveUtterance) -> ViewerEvent:
    """A stored final as viewers see it, live and in the history: type `final`, or `refined` once
    the second pass has changed its text."""
    return ViewerEvent(
        type="refined" if stored.refined_text else "final",
        session=str(stored.session_id),
        seq=stored.seq,
        utterance=stored.utterance,
        start_ms=stored.start_ms,
        end_ms=stored.end_ms,
        text=stored.shown_text,
        words=tuple(stored.shown_words),
    )


def mark_event(stored: LiveMark) -> ViewerEvent:
    """A stored mark: type `gap`, `paused` or `closed`."""
    return ViewerEvent(
        type=stored.kind,
        session=str(stored.session_id),
        seq=stored.seq,
        start_ms=stored.start_ms,
        end_ms=stored.end_ms,
    )


def state_event(session_id: uuid.UUID | str, state: str) -> ViewerEvent:
    return ViewerEvent(type="state", session=str(session_id), state=state)
