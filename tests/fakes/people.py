"""People of tests. The fixtures of `tests/conftest.py` name them."""

from __future__ import annotations

from webapp.accounts.models import User

PASSWORD = "correct horse battery staple"


def make_person(name: str) -> User:
    return User.objects.create_user(f"{name.lower()}@example.org", PASSWORD, name=name)


def make_administrator() -> User:
    return User.objects.create_superuser("admin@example.org", PASSWORD, name="Admin")
