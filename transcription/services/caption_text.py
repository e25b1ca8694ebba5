"""The stored captions of a live session as text, for players and broadcasts that poll.

Only finals: what may still change is for the captions page.
"""

from __future__ import annotations

from typing import Final

from asr_engine.results import Segment, Word
from transcription.formats import FORMATS, export
from transcription.formats.cues import make_cues
from transcription.models import LiveSession, LiveUtterance

MAX_LINES: Final = 100
"""That may be asked for at once; without a number all come."""
MEDIA_TYPES: Final = {name: FORMATS[name].media_type for name in ("txt", "vtt")}


def write_caption_text(*, session: LiveSession, extension: str, lines: int = 0) -> str:
    """WebVTT of the whole session, or plain text as lines of a subtitle: the last `lines` of them,
    all where that is 0. Nothing said yet gives a valid empty answer."""
    finals = LiveUtterance.objects.filter(session=session)
    if extension == "vtt":
        segments = [_segment(final) for final in finals.order_by("utterance")]
        return export("vtt", session.title, segments, language=session.language)
    # A final has at least one line, so so many of them are enough.
    latest = list(finals.order_by("-utterance")[:lines] if lines else finals.order_by("-utterance"))
    cues = make_cues(_segment(final) for final in reversed(latest))
    written = [line for cue in cues for line in cue.lines]
    return "".join(f"{line}\n" for line in written[-lines:])


def _segment(final: LiveUtterance) -> Segment:
    return Segment(
        start_ms=final.start_ms,
        end_ms=max(final.end_ms, final.start_ms + 1),
        text=final.shown_text,
        words=tuple(Word.from_json(word) for word in final.shown_words),
        language=final.language or None,
    )
