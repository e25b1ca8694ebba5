"""A person's own settings: name, time zone, the language that they mostly speak, and log-ins."""

from __future__ import annotations

import zoneinfo

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from transcription.errors import InvalidInputError, NotFoundError
from transcription.languages import MIXED, language_choices
from transcription.pages.forms import LanguageForm
from transcription.pages.requests import PersonRequest
from transcription.services.space import space_of
from webapp.accounts import people, selectors
from webapp.accounts.models import User


def time_zone_choices() -> list[tuple[str, str]]:
    """Zones named after places (`Europe/Berlin`), first of all the browser's own."""
    places = [zone for zone in zoneinfo.available_timezones() if "/" in zone]
    named = sorted(zone for zone in places if not zone.startswith(("Etc/", "SystemV/", "posix/")))
    choices = [(zone, zone.replace("_", " ")) for zone in named]
    return [("", "As in the browser"), ("UTC", "UTC"), *choices]


class ProfileForm(forms.ModelForm[User]):
    """What a person may change about themselves."""

    class Meta:
        model = User
        fields = ("name", "time_zone", "speech_language")

    name = forms.CharField(
        max_length=150,
        required=False,
        help_text="Shown to colleagues beside your recordings and captions.",
    )
    time_zone = forms.ChoiceField(
        label="Time zone",
        choices=time_zone_choices,
        required=False,
        help_text="Times are shown in it.",
    )
    speech_language = forms.ChoiceField(
        label="Spoken language",
        choices=language_choices,
        required=False,
        help_text="Proposed for captions and uploads; each of them may choose another.",
    )


@login_required
@require_http_methods(["GET", "POST"])
def profile(request: PersonRequest) -> HttpResponse:
    """Show and save the person's settings."""
    person = User.objects.get(pk=request.user.pk)
    form = ProfileForm(request.POST or None, instance=person)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, "Your profile is saved.")
        return redirect("profile")
    space = space_of(person)
    context = {
        "form": form,
        "space": space,
        "space_percent": round(space.share * 100),
        "factors": selectors.factors_of(person),
        "sessions": [
            (session, selectors.browser_words(session.user_agent))
            for session in selectors.sessions_of(person)
        ],
    }
    return render(request, "profile.html", context, status=400 if form.errors else 200)


@login_required
@require_POST
def end_session(request: PersonRequest, session_id: int) -> HttpResponse:
    """Log another browser of the person's own out."""
    own = selectors.sessions_of(request.user)
    session = next((session for session in own if session.pk == session_id), None)
    if session is None:
        raise NotFoundError
    people.end_session(session=session, ended_by=request.user)
    browser = selectors.browser_words(session.user_agent)
    messages.success(request, f"{browser} is logged out.")
    return redirect("profile")


@login_required
@require_POST
def end_other_sessions(request: PersonRequest) -> HttpResponse:
    """Log the person out everywhere but here."""
    people.end_other_sessions(request=request)
    messages.success(request, "You are logged out everywhere but here.")
    return redirect("profile")


@login_required
@require_POST
def speech_language(request: PersonRequest) -> HttpResponse:
    """Remember the language chosen last; the form that offers it stays as it is."""
    if request.POST.get("language") == MIXED:  # of one recording, hardly of the next captions
        return HttpResponse(status=204)
    form = LanguageForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError("This language is not known here.")
    User.objects.filter(pk=request.user.pk).update(speech_language=form.cleaned_data["language"])
    return HttpResponse(status=204)
