"""The front page of the administration."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from transcription.pages.administration import administrators_only
from transcription.pages.requests import PersonRequest


@administrators_only
@require_safe
def overview(request: PersonRequest) -> HttpResponse:
    return render(request, "administration/overview.html")


urlpatterns = [path("", overview, name="administration")]
