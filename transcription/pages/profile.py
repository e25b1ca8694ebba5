"""A person's own settings: name, time zone, the language that they mostly speak."""

from __future__ import annotations

import zoneinfo

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from transcription.errors import InvalidInputError
from transcription.languages import MIXED, language_choices
from transcription.pages.forms import LanguageForm
from transcription.pages.requests import PersonRequest
from transcription.services.space import space_of
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
    status = 400 if form.errors else 200
    space = space_of(person)
    context = {"form": form, "space": space, "space_percent": round(space.share * 100)}
    return render(request, "profile.html", context, status=status)


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
