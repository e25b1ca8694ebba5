"""The audit log: looked through by person, thing, act and day, and downloaded."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Final

from asgiref.sync import sync_to_async
from django import forms
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from transcription.errors import InvalidInputError
from transcription.formats import tables
from transcription.pages.administration import administrators_only
from transcription.pages.administration.audit_words import line_of
from transcription.pages.requests import PersonRequest
from webapp.accounts.audit import record_act
from webapp.accounts.audit_search import AuditSearch, Place, entries_from, entries_of
from webapp.accounts.models import Act, AuditEntry
from webapp.config import site_settings

ENTRIES_A_PAGE: Final = 50
ENTRIES_A_FETCH: Final = 500
PIECE_CHARACTERS: Final = 48 * 1024
"""Of a download: at most four bytes each, and the entry that goes beyond."""
COLUMNS: Final = ("at", "person", "token", "address", "act", "kind", "id", "thing", "detail")


class AuditForm(forms.Form):
    """What is looked for. Days are those of the person who looks."""

    person = forms.CharField(label="Person", max_length=100, required=False)
    thing = forms.CharField(label="Recording or other thing", max_length=100, required=False)
    act = forms.ChoiceField(label="Act", required=False)
    since = forms.DateField(label="From", required=False, widget=forms.DateInput({"type": "date"}))
    until = forms.DateField(label="To", required=False, widget=forms.DateInput({"type": "date"}))
    about = forms.RegexField(
        r"^[a-z]{1,40}:[0-9A-Za-z-]{1,40}$", required=False, widget=forms.HiddenInput
    )

    def __init__(self, data: Mapping[str, str]) -> None:
        super().__init__(data)
        acts = sorted(
            ((act.value, str(act.label).capitalize()) for act in Act), key=lambda choice: choice[1]
        )
        self.fields["act"].choices = [("", "Any"), *acts]  # type: ignore[attr-defined]

    def clean(self) -> None:
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and until < since:
            self.add_error("until", "This day is before the first one.")

    def search(self) -> AuditSearch:
        """Of a valid form."""
        asked = self.cleaned_data
        kind, _, subject_id = asked["about"].partition(":")
        until: date | None = asked["until"]
        return AuditSearch(
            person=asked["person"],
            thing=asked["thing"],
            kind=kind,
            subject_id=subject_id,
            act=asked["act"],
            since=_midnight(asked["since"]),
            until=_midnight(until + timedelta(days=1) if until else None),
        )

    def address(self, **others: str) -> str:
        """The query of a page with this search, and `others` with it."""
        asked = {name: value for name, value in self.data.items() if name in self.fields and value}
        return urlencode(asked | others)


@administrators_only
@require_safe
def audit(request: PersonRequest) -> HttpResponse:
    """The entries that are looked for, the newest first, a page at a time."""
    form = AuditForm(request.GET.dict())
    if form.is_valid():
        place = Place.read(request.GET.get("after", ""))
        found = entries_from(entries_of(form.search()), place, ENTRIES_A_PAGE + 1)
    else:
        place, found = None, []
    shown = found[:ENTRIES_A_PAGE]
    has_more = len(found) > len(shown)
    context = {
        "form": form,
        "lines": [line_of(entry) for entry in shown],
        "is_searched": bool(form.address()),
        "address": form.address(),
        "about": _about(form, shown),
        "is_first": place is None,
        "older": form.address(after=str(Place.after(shown[-1]))) if has_more else "",
        "days": site_settings().audit_days,
    }
    status = 400 if form.errors else 200
    return render(request, "administration/audit.html", context, status=status)


@administrators_only
@require_safe
def audit_csv(request: PersonRequest) -> StreamingHttpResponse:
    """The same entries as a table, all of them."""
    entries = _asked_for(request, "csv")
    head = tables.MARK + tables.write_lines([COLUMNS])
    return _download(_pieces(entries, _csv, head=head, tail=""), "text/csv", "csv")


@administrators_only
@require_safe
def audit_json(request: PersonRequest) -> StreamingHttpResponse:
    """The same entries as a JSON list, all of them."""
    entries = _asked_for(request, "json")
    pieces = _pieces(entries, _json, head="[", tail="\n]\n", between=",")
    return _download(pieces, "application/json", "json")


def _asked_for(request: PersonRequest, extension: str) -> QuerySet[AuditEntry]:
    form = AuditForm(request.GET.dict())
    if not form.is_valid():
        raise InvalidInputError("This search is not understood. Nothing was downloaded.")
    detail = {"what": "audit log", "format": extension}
    record_act(act=Act.EXPORTED, actor=request.user, detail=detail)
    return entries_of(form.search())


def _download(pieces: AsyncIterator[str], media_type: str, extension: str) -> StreamingHttpResponse:
    name = f"audit-{timezone.localdate().isoformat()}.{extension}"
    return StreamingHttpResponse(
        pieces,
        content_type=f"{media_type}; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "private, no-store",
        },
    )


async def _pieces(
    entries: QuerySet[AuditEntry],
    write: Callable[[AuditEntry], str],
    *,
    head: str,
    tail: str,
    between: str = "",
) -> AsyncIterator[str]:
    """All entries in small pieces, read a few at a time: the log may be of any length."""
    fetch = sync_to_async(entries_from)
    piece, place, is_first = head, None, True
    while batch := await fetch(entries, place, ENTRIES_A_FETCH):
        for entry in batch:
            piece += ("" if is_first else between) + write(entry)
            is_first = False
            if len(piece) >= PIECE_CHARACTERS:
                yield piece
                piece = ""
        place = Place.after(batch[-1])
    yield piece + tail


def _cells(entry: AuditEntry) -> Sequence[str]:
    return (
        entry.at.isoformat(timespec="seconds"),
        entry.actor_name,
        entry.token_name,
        entry.address or "",
        entry.act,
        entry.subject_kind,
        entry.subject_id,
        entry.subject_name,
        json.dumps(entry.detail, ensure_ascii=False) if entry.detail else "",
    )


def _csv(entry: AuditEntry) -> str:
    return tables.write_lines([_cells(entry)])


def _json(entry: AuditEntry) -> str:
    fields: dict[str, object] = dict(zip(COLUMNS, _cells(entry), strict=True))
    return "\n" + json.dumps(fields | {"detail": entry.detail}, ensure_ascii=False)


def _about(form: AuditForm, shown: Sequence[AuditEntry]) -> str:
    """What the thing is called that all entries are about, where one was chosen."""
    if form.errors or not form.cleaned_data["about"]:
        return ""
    return line_of(shown[0]).thing or shown[0].subject_name if shown else "one thing"


def _midnight(day: date | None) -> datetime | None:
    """The first moment of a day, in the zone of the person who looks."""
    return None if day is None else timezone.make_aware(datetime.combine(day, time.min))


urlpatterns = [
    path("audit/", audit, name="administration_audit"),
    path("audit/export.csv", audit_csv, name="administration_audit_csv"),
    path("audit/export.json", audit_json, name="administration_audit_json"),
]
