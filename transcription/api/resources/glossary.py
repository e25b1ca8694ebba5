"""Names and terms that are expected to be heard."""

from __future__ import annotations

from typing import Annotated

from ninja import Schema
from pydantic import Field

from transcription.api.words import Body, Line, Number
from transcription.models import GlossaryTerm
from transcription.models.glossary import DEFAULT_WEIGHT
from transcription.services.glossary import MAX_PHRASE_LENGTH, MAX_RECORDING_TERMS, MAX_WEIGHT


class TermIn(Body):
    """A phrase as it should be written, and how much it is preferred."""

    phrase: Annotated[Line, Field(min_length=1, max_length=MAX_PHRASE_LENGTH)]
    weight: Annotated[Number, Field(ge=0, le=MAX_WEIGHT, allow_inf_nan=False)] = DEFAULT_WEIGHT


class TermOut(Schema):
    """A term of the organisation's glossary."""

    id: int
    phrase: str
    weight: float

    @staticmethod
    def of(term: GlossaryTerm) -> TermOut:
        return TermOut(id=term.pk, phrase=term.phrase, weight=term.weight)


class RecordingTerms(Body):
    """A recording's own list. It counts from the next transcription on."""

    terms: Annotated[list[TermIn], Field(max_length=MAX_RECORDING_TERMS)]
