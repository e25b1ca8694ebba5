"""What a client asks: the fields of a multipart form, as OpenAI's API names them.

Fields that steer a model of theirs (`prompt`, `temperature`, `include[]`, `chunking_strategy` and
the like) are taken and have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from transcription.api.openai.models import DRAFT, REFINED, model_named
from transcription.errors import InvalidInputError, NotFoundError
from transcription.languages import LANGUAGES, MIXED
from transcription.services.job_options import JobOptions, read_options

TRUE: Final = frozenset({"true", "1"})
FALSE: Final = frozenset({"", "false", "0"})
GRANULARITIES: Final = ("segment", "word")


class ResponseFormat(StrEnum):
    JSON = "json"
    TEXT = "text"
    SRT = "srt"
    VERBOSE_JSON = "verbose_json"
    VTT = "vtt"


STREAMED: Final = (ResponseFormat.JSON, ResponseFormat.TEXT)


class UnknownModelError(NotFoundError):
    code = "model_not_found"


@dataclass(frozen=True, slots=True)
class Asked:
    """`granularities` are those of a verbose answer."""

    file: UploadedFile[Any]
    options: JobOptions
    response_format: ResponseFormat
    granularities: frozenset[str]
    is_streamed: bool


def read_form(request: HttpRequest) -> Asked:
    """Parses the body, to disk. Raises InvalidInputError, UnknownModelError."""
    form = request.POST
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile):
        raise InvalidInputError("`file` is missing: send the recording as a part of a form.")
    name = form.get("model", REFINED)
    model = model_named(name)
    if model is None:
        raise UnknownModelError(f"There is no such model. This server has {REFINED} and {DRAFT}.")
    response_format = _read_format(form.get("response_format", ResponseFormat.JSON))
    is_streamed = _read_truth(form.get("stream", ""))
    if is_streamed and response_format not in STREAMED:
        raise InvalidInputError("`stream` goes with the response formats json and text only.")
    language = form.get("language", "")
    if language and language not in {*LANGUAGES, MIXED}:
        raise InvalidInputError("`language` must be a code of two or three letters, such as en.")
    return Asked(
        file=file,
        options=read_options(language=language, is_draft_only=model == DRAFT),
        response_format=response_format,
        granularities=_read_granularities(
            form.getlist("timestamp_granularities[]") or form.getlist("timestamp_granularities")
        ),
        is_streamed=is_streamed,
    )


def _read_format(name: str) -> ResponseFormat:
    try:
        return ResponseFormat(name)
    except ValueError:
        known = ", ".join(ResponseFormat)
        raise InvalidInputError(f"`response_format` must be one of {known}.") from None


def _read_truth(value: str) -> bool:
    if value.lower() not in TRUE | FALSE:
        raise InvalidInputError("`stream` must be true or false.")
    return value.lower() in TRUE


def _read_granularities(names: list[str]) -> frozenset[str]:
    if not set(names) <= set(GRANULARITIES):
        raise InvalidInputError("`timestamp_granularities` must be word, segment or both.")
    return frozenset(names or ["segment"])
