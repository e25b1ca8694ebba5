"""What is answered, in the shapes that OpenAI's clients read. Pure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from asr_engine.results import Segment
from transcription.api.openai.forms import Asked, ResponseFormat
from transcription.formats import FORMATS, export
from transcription.formats.documents import pieces_of
from transcription.languages import LANGUAGES

JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Heard:
    """A finished transcript; `language` is a code, or empty where nobody speaks."""

    segments: Sequence[Segment]
    language: str
    duration_ms: int

    @property
    def text(self) -> str:
        return "".join(pieces_of(self.segments))


def write_answer(heard: Heard, asked: Asked) -> tuple[str, str]:
    """(body, media type) of a whole answer."""
    match asked.response_format:
        case ResponseFormat.TEXT:
            return f"{heard.text}\n", FORMATS["txt"].media_type
        case ResponseFormat.SRT | ResponseFormat.VTT as subtitles:
            body = export(
                subtitles,
                "",
                heard.segments,
                language=heard.language,
                duration_ms=heard.duration_ms or None,
            )
            return body, FORMATS[subtitles].media_type
        case ResponseFormat.VERBOSE_JSON:
            return _json(_verbose(heard, asked.granularities)), JSON_TYPE
    return _json({"text": heard.text, "usage": _usage(heard)}), JSON_TYPE


def write_event(kind: str, **fields: str) -> str:
    """One Server-Sent Event, whose name is its `type` too."""
    return f"event: {kind}\ndata: {_json({'type': kind, **fields})}\n\n"


def write_error_event(error: dict[str, Any]) -> str:
    return f"event: error\ndata: {_json({'type': 'error', 'error': error})}\n\n"


def _verbose(heard: Heard, granularities: frozenset[str]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "task": "transcribe",
        "language": LANGUAGES.get(heard.language, heard.language).lower(),
        "duration": heard.duration_ms / 1000,
        "text": heard.text,
        "usage": _usage(heard),
    }
    if "word" in granularities:
        answer["words"] = [
            {"word": word.text, "start": word.start_ms / 1000, "end": word.end_ms / 1000}
            for segment in heard.segments
            for word in segment.words
        ]
    if "segment" in granularities:
        answer["segments"] = list(_segments(heard.segments))
    return answer


def _segments(segments: Sequence[Segment]) -> Iterator[dict[str, Any]]:
    """Those with words. Their texts in a row are the whole text, spaces and all.

    We keep neither the tokens nor the temperature of a decoder: those are empty and 0.
    """
    pieces = zip(segments, pieces_of(segments), strict=True)
    for index, (segment, piece) in enumerate(pair for pair in pieces if pair[1]):
        raw = piece.encode()
        yield {
            "id": index,
            "seek": segment.start_ms // 10,
            "start": segment.start_ms / 1000,
            "end": segment.end_ms / 1000,
            "text": piece,
            "tokens": [],
            "temperature": 0.0,
            "avg_logprob": segment.mean_log_probability or 0.0,
            "compression_ratio": len(raw) / len(zlib.compress(raw)),
            "no_speech_prob": segment.no_speech_probability or 0.0,
        }


def _usage(heard: Heard) -> dict[str, Any]:
    return {"type": "duration", "seconds": round(heard.duration_ms / 1000)}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
