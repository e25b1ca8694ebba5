"""REST v1: the organisation's glossary, for administrators, and a recording's own terms."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.urls import reverse
from ninja import Query, Router, Schema
from pydantic import Field

from transcription import selectors
from transcription.api.access import ADMINISTERS, READS, WRITES, ApiRequest
from transcription.api.answers import check_unchanged, checks_tag, tagged
from transcription.api.cursors import Page, Paging, in_order
from transcription.api.repetition import once_by_key
from transcription.api.resources.glossary import RecordingTerms, TermIn, TermOut
from transcription.api.words import Line, check_key
from transcription.models import GlossaryTerm, Recording
from transcription.services import glossary

router = Router()
of_recordings = Router()


class TermFilter(Schema):
    """Which terms."""

    q: Annotated[Line, Field(max_length=100, description="Part of the phrase.")] = ""


@router.get("", auth=ADMINISTERS, response=Page[TermOut])
def list_terms(
    request: ApiRequest, wanted: Query[TermFilter], paging: Query[Paging]
) -> Page[TermOut]:
    """The organisation's glossary, in the order in which it was written."""
    terms = selectors.organisation_terms_of(request.auth)
    if wanted.q:
        terms = terms.filter(phrase__icontains=wanted.q)
    rows, next_cursor = in_order(terms, paging, by="id")
    return Page(items=[TermOut.of(row) for row in rows], next_cursor=next_cursor)


@router.post("", auth=ADMINISTERS, response={201: TermOut})
@once_by_key()
def write_term(request: ApiRequest, asked: TermIn) -> HttpResponse:
    """Add a term. A phrase that is there already takes the new spelling and weight."""
    terms = selectors.organisation_terms_of(request.auth)
    term = glossary.clean_term(asked.phrase, asked.weight)
    glossary.write_terms(recording=None, terms=[term], written_by=request.auth)
    stored = terms.get(phrase=term.phrase)
    location = reverse("api-v1:read_term", args=[stored.pk])
    return tagged(request, TermOut.of(stored), status=201, location=location)


@router.get("/{term_id}", auth=ADMINISTERS, response={200: TermOut, 304: None})
def read_term(request: ApiRequest, term_id: int) -> HttpResponse:
    """One term."""
    return tagged(request, TermOut.of(_term(request, term_id)))


@router.put("/{term_id}", auth=ADMINISTERS, response=TermOut)
@checks_tag
def change_term(request: ApiRequest, term_id: int, asked: TermIn) -> HttpResponse:
    """Write a term anew."""
    with transaction.atomic():
        term = _term(request, term_id)
        check_unchanged(request, TermOut.of(term))
        glossary.change_term(
            term=term, phrase=asked.phrase, weight=asked.weight, changed_by=request.auth
        )
    return tagged(request, TermOut.of(term))


@router.delete("/{term_id}", auth=ADMINISTERS, response={204: None})
@checks_tag
def delete_term(request: ApiRequest, term_id: int) -> HttpResponse:
    """Forget a term."""
    with transaction.atomic():
        term = _term(request, term_id)
        check_unchanged(request, TermOut.of(term))
        glossary.delete_term(term=term, deleted_by=request.auth)
    return HttpResponse(status=204)


@of_recordings.get("/{recording_id}/terms", auth=READS, response={200: RecordingTerms, 304: None})
def list_recording_terms(request: ApiRequest, recording_id: UUID) -> HttpResponse:
    """A recording's own names and terms."""
    recording = selectors.access_recording_by_id(request.auth, recording_id)
    return tagged(request, _terms(recording))


@of_recordings.put("/{recording_id}/terms", auth=WRITES, response=RecordingTerms)
@checks_tag
def write_recording_terms(
    request: ApiRequest, recording_id: UUID, asked: RecordingTerms
) -> HttpResponse:
    """Replace the list. It counts when the recording is transcribed again."""
    terms = [glossary.clean_term(term.phrase, term.weight) for term in asked.terms]
    with transaction.atomic():
        recording = selectors.access_editable_recording_by_id(request.auth, recording_id)
        check_unchanged(request, _terms(recording))
        glossary.write_terms(
            recording=recording, terms=terms, written_by=request.auth, replaces_all=True
        )
    return tagged(request, _terms(recording))


def _term(request: ApiRequest, term_id: int) -> GlossaryTerm:
    return selectors.access_organisation_term_by_id(request.auth, check_key(term_id))


def _terms(recording: Recording) -> RecordingTerms:
    terms = glossary.terms_of(recording)
    return RecordingTerms(terms=[TermIn(phrase=term.phrase, weight=term.weight) for term in terms])
