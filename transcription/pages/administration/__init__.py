"""Pages of the administration. Everybody but administrators gets 404 there, as for what is not.

Each page is a module of its own with its `urlpatterns`, which `urls` collects; its template extends
`administration/base.html`, and its entry of the navigation stands in `templatetags.administration`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http.response import HttpResponseBase

from transcription.errors import NotFoundError
from transcription.pages.requests import PersonRequest

View = Callable[..., HttpResponseBase]


def administrators_only(view: View) -> View:
    """Guard of every view here: log-in for the anonymous, 404 for everybody else."""

    @wraps(view)
    def guarded(request: PersonRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_active or not request.user.is_administrator:
            raise NotFoundError
        return view(request, *args, **kwargs)

    guard: View = login_required(guarded)
    return guard
