"""Reads of people, teams and sessions. Who may ask is decided by the pages and the REST service."""

from __future__ import annotations

from typing import Final

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from webapp.accounts.models import Role, Team, User

FACTOR_WORDS: Final = {
    Authenticator.Type.TOTP: "Authenticator app",
    Authenticator.Type.WEBAUTHN: "Passkey or security key",
    Authenticator.Type.RECOVERY_CODES: "Recovery codes",
}

# What a browser says of itself, the tellest mark first: Edge also calls itself Chrome and Safari.
BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS: Final = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def people_matching(query: str = "") -> QuerySet[User]:
    """People, not service accounts, by name, each with `has_factor`."""
    factors = Authenticator.objects.filter(user=OuterRef("pk"))
    people = User.objects.exclude(role=Role.SERVICE).annotate(has_factor=Exists(factors))
    if query:
        people = people.filter(Q(name__icontains=query) | Q(email__icontains=query))
    return people.order_by("-is_active", "name", "email")


def teams_with_size() -> QuerySet[Team]:
    """All teams by name, each with `size`, its number of members."""
    return Team.objects.annotate(size=Count("members")).order_by("name")


def factors_of(person: User) -> list[str]:
    """The second factors of a person in words, of each kind once."""
    kinds = Authenticator.objects.filter(user=person).values_list("type", flat=True).distinct()
    return [words for kind, words in FACTOR_WORDS.items() if kind in set(kinds)]


def sessions_of(person: User) -> list[UserSession]:
    """Where the person is logged in, the latest first; what is over is forgotten on the way."""
    sessions: list[UserSession] = UserSession.objects.purge_and_list(person)
    return sorted(sessions, key=lambda session: session.created_at, reverse=True)


def browser_words(user_agent: str) -> str:
    """A browser as its person would name it: “Firefox on Windows”."""
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "Another browser")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if system else browser
