"""The request of a person who has logged in, for the types of the views."""

from __future__ import annotations

from django.http import HttpRequest

from webapp.accounts.models import User


class PersonRequest(HttpRequest):
    """What a view behind `login_required` gets."""

    user: User
