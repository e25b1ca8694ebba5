"""What the speakers of a recording are called.

A name belongs to a label, and is kept when the recording is transcribed again, as long as labels
mean the same voices: another audio track, or speakers told apart in another way, have names of
their own, found again on the way back. Two labels with one name are one person wherever the
transcript is read: so voices that were told apart by mistake become one again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import F, Min, QuerySet, Sum

from asr_engine.tracks import ChannelMode, ChannelPlan
from transcription.broadcast import recording_changed_on_commit
from transcription.errors import InvalidInputError
from transcription.models import Recording, SpeakerName, TranscriptRevision
from transcription.services.job_options import COUNT_SPEAKERS
from transcription.services.names import one_line
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User

MAX_NAME_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class Heard:
    """A label of a revision, and how long it speaks there."""

    label: str
    spoken_ms: int


def heard_in(revision: TranscriptRevision | None) -> list[Heard]:
    """Who speaks, in the order of their first words."""
    if revision is None:
        return []
    rows = (
        revision.segments.exclude(speaker="")
        .values("speaker")
        .annotate(spoken_ms=Sum(F("end_ms") - F("start_ms")), first=Min("start_ms"))
        .order_by("first", "speaker")
    )
    return [Heard(row["speaker"], row["spoken_ms"]) for row in rows]


def voices_of(plan: ChannelPlan, recording: Recording) -> str:
    """Whose labels a transcript has: its track, and how voices are told apart there."""
    track = "" if plan.track is None else plan.track
    if plan.mode is ChannelMode.EACH:
        return f"{track}:{plan.mode}"
    if not recording.finds_speakers:
        return ""
    return f"{track}:{recording.speaker_count or COUNT_SPEAKERS}"


def names_of(recording: Recording, revision: TranscriptRevision | None = None) -> dict[str, str]:
    """Names by label, of the speakers of `revision`; without one, of that which is shown."""
    return dict(_names(recording, revision).values_list("label", "name"))


def _names(
    recording: Recording, revision: TranscriptRevision | None = None
) -> QuerySet[SpeakerName]:
    revision = revision or recording.current_revision
    return recording.speaker_names.filter(voices="" if revision is None else revision.voices)


def name_speakers(*, recording: Recording, names: Mapping[str, str], named_by: User) -> None:
    """Call the speakers with these labels so; an empty name takes theirs away.

    Raises InvalidInputError for a label that nobody has, or a name that is too long.
    """
    cleaned = {label: one_line(name) for label, name in names.items()}
    if any(len(name) > MAX_NAME_LENGTH for name in cleaned.values()):
        raise InvalidInputError(
            f"A name has at most {MAX_NAME_LENGTH} characters. Nothing was changed."
        )
    revision = recording.current_revision
    known = {heard.label for heard in heard_in(revision)}
    if revision is None or not known.issuperset(cleaned):
        raise InvalidInputError("The transcript has changed meanwhile. Nothing was renamed.")
    with transaction.atomic():
        for label, name in cleaned.items():
            if name:
                SpeakerName.objects.update_or_create(
                    recording=recording,
                    voices=revision.voices,
                    label=label,
                    defaults={"name": name},
                )
            else:
                _names(recording, revision).filter(label=label).delete()
        record_act(act=Act.EDITED, actor=named_by, on=recording, detail={"what": "speakers"})
        recording_changed_on_commit(recording.id)
