"""What was stored of a live session's captions, as its readers are told it."""

from __future__ import annotations

from collections.abc import Iterator

from asr_engine.protocol import ViewerEvent
from transcription.models import LiveMark, LiveSession, LiveUtterance
from transcription.services.live_sessions import final_event, mark_event


def history_after(session: LiveSession, after_seq: int) -> Iterator[ViewerEvent]:
    """Stored changes with `after_seq` < seq <= `session.last_seq`, by their place in the session.

    `session` must have been read before: what is stored after that comes live.
    """
    numbers = {"session": session, "seq__gt": after_seq, "seq__lte": session.last_seq}
    marks = list(LiveMark.objects.filter(**numbers).order_by("start_ms", "seq"))
    for final in LiveUtterance.objects.filter(**numbers).order_by("utterance"):
        while marks and marks[0].start_ms <= final.start_ms:
            yield mark_event(marks.pop(0))
        yield final_event(final)
    for mark in marks:
        yield mark_event(mark)
