"""Which closed utterances of live sessions the second pass hears next, and where their audio lies.

Readers look at the newest lines: each session's newest utterance comes first, and what has grown
old is left to the pass over the whole recording. What comes of an utterance is stored by
`live_sessions.record_refined`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db.models import F, QuerySet
from django.utils import timezone

from transcription.models import LiveUtterance
from transcription.services.live_sessions import ACTIVE

REFINED_WITHIN: Final = timedelta(minutes=5)
"""Of an utterance's end: nobody looks at older lines, and the backlog is bounded."""
MAX_ATTEMPTS: Final = 3
"""On each of which a worker died, or the model failed."""
ASKED_KEY: Final = "live:refine:asked"
"""Broker: a worker has been woken, and has not looked yet; expires after ASKED_S."""
ASKED_S: Final = 60
LOOKED_AT: Final = 500
"""Utterances among which turns are taken."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the finals before and after an utterance end and begin; None after the newest."""

    before_ms: int
    after_ms: int | None


def has_due() -> bool:
    """Whether any utterance waits for the second pass."""
    return _waiting().exists()


def due_utterances() -> list[LiveUtterance]:
    """Those that wait, the one whose turn it is first, with their sessions."""
    newest = _waiting().select_related("session").order_by("-stored_at", "-id")
    turns: Counter[object] = Counter()
    ranked = []
    for place, utterance in enumerate(newest.defer("words")[:LOOKED_AT]):
        ranked.append((turns[utterance.session_id], place, utterance))
        turns[utterance.session_id] += 1
    return [utterance for _, _, utterance in sorted(ranked, key=lambda rank: rank[:2])]


def begin_attempts(*, utterances: Sequence[LiveUtterance]) -> None:
    """Before the model hears them: what kills a worker each time is not tried for ever."""
    LiveUtterance.objects.filter(id__in=[utterance.id for utterance in utterances]).update(
        refine_attempts=F("refine_attempts") + 1
    )


def surroundings_of(utterance: LiveUtterance) -> Surroundings:
    others = LiveUtterance.objects.filter(session_id=utterance.session_id)
    before = others.filter(utterance__lt=utterance.utterance).order_by("-utterance")
    after = others.filter(utterance__gt=utterance.utterance).order_by("utterance")
    return Surroundings(
        before_ms=before.values_list("end_ms", flat=True).first() or 0,
        after_ms=after.values_list("start_ms", flat=True).first(),
    )


def _waiting() -> QuerySet[LiveUtterance]:
    return LiveUtterance.objects.filter(
        session__state__in=ACTIVE,
        refined_at=None,
        refine_attempts__lt=MAX_ATTEMPTS,
        stored_at__gt=timezone.now() - REFINED_WITHIN,
    )
