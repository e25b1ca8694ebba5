"""Names and terms: the organisation's glossary, for administrators, and a recording's own list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from transcription import selectors
from transcription.errors import InvalidInputError
from transcription.models import JobState, Recording
from transcription.models.glossary import DEFAULT_WEIGHT
from transcription.pages.requests import PersonRequest
from transcription.services import glossary, jobs
from transcription.services.glossary import MAX_ORGANISATION_TERMS, MAX_WEIGHT, Term, Written

TERMS_A_PAGE: Final = 50
LONGEST_QUERY: Final = 100
MAX_LIST_BYTES: Final = 500_000
"""Of a list that is imported: room for every term several times over."""


class TermForm(forms.Form):
    """One phrase as it should be written, and how much it is preferred."""

    phrase = forms.CharField(label="Name or term", max_length=glossary.MAX_PHRASE_LENGTH)
    weight = forms.FloatField(
        label="Weight", min_value=0, max_value=MAX_WEIGHT, initial=f"{DEFAULT_WEIGHT:g}"
    )


class ListForm(forms.Form):
    """Terms by the list: pasted, or from a text or CSV file, or both."""

    lines = forms.CharField(
        label="One a line",
        required=False,
        max_length=MAX_LIST_BYTES,
        widget=forms.Textarea({"rows": 6, "spellcheck": "false"}),
    )
    file = forms.FileField(label="Or a text or CSV file", required=False)

    def clean_file(self) -> str:
        file: UploadedFile[bytes] | None = self.cleaned_data["file"]
        if file is None:
            return ""
        if file.size is None or file.size > MAX_LIST_BYTES:
            raise forms.ValidationError("The file is too large for a list of terms.")
        try:
            text: str = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is no text. Save it as UTF-8.") from None
        return text


class RecordingTermsForm(forms.Form):
    """A recording's own list, whole."""

    terms = forms.CharField(
        label="Names and terms of this recording",
        help_text="A weight from 0 to 10 may follow behind a comma; 3 is usual.",
        required=False,
        max_length=MAX_LIST_BYTES,
        widget=forms.Textarea({"rows": 8, "spellcheck": "false"}),
    )


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """What somebody wrote in the row of a term, and why it cannot stand there."""

    term_id: int
    phrase: str
    weight: str
    sentence: str


@login_required
@require_GET
def organisation(request: PersonRequest) -> HttpResponse:
    """The glossary, a page at a time, searched by `q`."""
    return _list_page(request)


def _list_page(
    request: PersonRequest,
    *,
    term_form: TermForm | None = None,
    list_form: ListForm | None = None,
    refused: RefusedChange | None = None,
) -> HttpResponse:
    """The same page, with what was refused and why."""
    asked = request.POST if refused else request.GET
    terms = selectors.organisation_terms_of(request.user)
    count = terms.count()
    query = asked.get("q", "").replace("\0", "").strip()[:LONGEST_QUERY]
    if query:
        terms = terms.filter(phrase__icontains=query)
    context = {
        "page": Paginator(terms, TERMS_A_PAGE).get_page(asked.get("page")),
        "term_query": query,
        "count": count,
        "most": MAX_ORGANISATION_TERMS,
        "term_form": term_form or TermForm(),
        "list_form": list_form or ListForm(),
        "refused": refused,
    }
    for form in (term_form, list_form):
        if form is not None:
            _begin_at_fault(form)
    is_refused = term_form or list_form or refused
    return render(request, "glossary/glossary.html", context, status=400 if is_refused else 200)


@login_required
@require_GET
def export(request: PersonRequest) -> HttpResponse:
    """All terms as CSV, as the import reads it."""
    terms = selectors.organisation_terms_of(request.user)
    response = HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="glossary.csv"'},
    )
    response.writelines(f"{line}\r\n" for line in glossary.table_of(terms.iterator()))
    return response


@login_required
@require_POST
def add(request: PersonRequest) -> HttpResponse:
    selectors.organisation_terms_of(request.user)
    form = TermForm(request.POST)
    if form.is_valid():
        try:
            term = glossary.clean_term(**form.cleaned_data)
            written = glossary.write_terms(recording=None, terms=[term], written_by=request.user)
        except InvalidInputError as error:
            form.add_error("phrase", error.text)
        else:
            what = "is added" if written.added else "was there already and is up to date"
            messages.success(request, f"“{term.phrase}” {what}.")
            return redirect("glossary")
    return _list_page(request, term_form=form)


@login_required
@require_POST
def import_list(request: PersonRequest) -> HttpResponse:
    selectors.organisation_terms_of(request.user)
    form = ListForm(request.POST, request.FILES)
    if form.is_valid() and (terms := _read_lists(form)):
        try:
            written = glossary.write_terms(recording=None, terms=terms, written_by=request.user)
        except InvalidInputError as error:
            form.add_error("lines", error.text)
        else:
            messages.success(request, f"The list is read: {_in_words(written)}.")
            return redirect("glossary")
    return _list_page(request, list_form=form)


@login_required
@require_POST
def change(request: PersonRequest, term_id: int) -> HttpResponse:
    term = selectors.access_organisation_term_by_id(request.user, term_id)
    form = TermForm(request.POST)
    if form.is_valid():
        try:
            glossary.change_term(term=term, changed_by=request.user, **form.cleaned_data)
        except InvalidInputError as error:
            form.add_error("phrase", error.text)
        else:
            messages.success(request, f"“{term.phrase}” is saved.")
            return _back(request)
    written = {name: request.POST.get(name, "") for name in ("phrase", "weight")}
    return _list_page(
        request, refused=RefusedChange(term.pk, sentence=_first_error(form), **written)
    )


@login_required
@require_POST
def delete(request: PersonRequest, term_id: int) -> HttpResponse:
    term = selectors.access_organisation_term_by_id(request.user, term_id)
    glossary.delete_term(term=term, deleted_by=request.user)
    messages.success(request, f"“{term.phrase}” is deleted.")
    return _back(request)


@login_required
@require_POST
def recording_terms(request: PersonRequest, recording_id: UUID) -> HttpResponse:
    """Replace the recording's own list; with `again`, transcribe it anew at once."""
    editable = selectors.access_editable_recording_by_id(request.user, recording_id)
    form = RecordingTermsForm(request.POST)
    is_written = form.is_valid()
    if is_written:
        try:
            glossary.write_terms(
                recording=editable,
                terms=glossary.read_terms(form.cleaned_data["terms"].splitlines()),
                written_by=request.user,
                replaces_all=True,
            )
        except InvalidInputError as error:
            form.add_error("terms", error.text)
            is_written = False
    if not is_written:
        _begin_at_fault(form)
        context = {
            "recording": editable,
            "form": form,
            "can_retry": not (_has_open_job(editable) or editable.audio_removed_at),
        }
        return render(request, "glossary/recording.html", context, status=400)
    if "again" in request.POST:
        jobs.retry_job(recording=editable, requested_by=request.user)
        messages.success(request, "The terms are saved, and the recording waits for its turn.")
    elif _has_open_job(editable):
        messages.success(
            request,
            "The terms are saved. They count for what is still to be heard, and for all of it when "
            "the recording is transcribed again.",
        )
    else:
        messages.success(
            request, "The terms are saved. They count when the recording is transcribed again."
        )
    return redirect("recording", editable.id)


def _read_lists(form: ListForm) -> list[Term]:
    """Terms of the file and of what was pasted; none, and why at the field, where one is bad."""
    terms: list[Term] = []
    for name in ("file", "lines"):
        try:
            terms += glossary.read_terms(form.cleaned_data[name].splitlines())
        except InvalidInputError as error:
            form.add_error(name, error.text)
    if not terms and not form.errors:
        form.add_error("lines", glossary.EMPTY_LIST)
    return [] if form.errors else terms


def _has_open_job(recording: Recording) -> bool:
    return recording.jobs.filter(state__in=(JobState.QUEUED, JobState.RUNNING)).exists()


def _begin_at_fault(form: forms.Form) -> None:
    """The browser shows the page where the form's first fault is."""
    for name in form.errors:
        form.fields[name].widget.attrs["autofocus"] = True
        break


def _first_error(form: forms.Form) -> str:
    field, errors = next(iter(form.errors.items()))
    return f"{form.fields[field].label}: {errors[0]} Nothing was changed."


def _in_words(written: Written) -> str:
    parts = [
        f"{number} {what}"
        for number, what in ((written.added, "added"), (written.changed, "changed"))
        if number
    ]
    return ", ".join(parts) or "everything in it was there already"


def _back(request: PersonRequest) -> HttpResponse:
    """To the page of the list that the request came from, with its search."""
    kept: dict[str, Any] = {
        name: request.POST[name][:LONGEST_QUERY] for name in ("q", "page") if request.POST.get(name)
    }
    response = redirect("glossary")
    if kept:
        response["Location"] += f"?{urlencode(kept)}"
    return response


urlpatterns = [
    path("glossary/", organisation, name="glossary"),
    path("glossary/add/", add, name="glossary_add"),
    path("glossary/import/", import_list, name="glossary_import"),
    path("glossary/export.csv", export, name="glossary_export"),
    path("glossary/<int:term_id>/", change, name="glossary_change"),
    path("glossary/<int:term_id>/delete/", delete, name="glossary_delete"),
    path("recordings/<uuid:recording_id>/terms/", recording_terms, name="recording_terms"),
]
