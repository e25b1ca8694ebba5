"""`manage.py createtoken`."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from webapp.accounts.models import ApiToken, User
from webapp.accounts.tokens import token_of_secret


def test_token_is_printed_once_and_stored_as_a_hash(alice: User) -> None:
    output = StringIO()
    call_command(
        "createtoken", "ALICE@example.org", "--days", "7", stdout=output, stderr=StringIO()
    )
    secret = output.getvalue().strip()
    token = ApiToken.objects.get()
    assert token_of_secret(secret) == token
    assert token.user == alice
    assert secret not in (token.sha256, token.name)
    assert token.expires_at is not None
    assert token.expires_at - timezone.now() < timedelta(days=7, minutes=1)


@pytest.mark.parametrize("arguments", [["nobody@example.org"], ["alice@example.org", "--days=0"]])
def test_impossible_token_is_refused_with_a_sentence(alice: User, arguments: list[str]) -> None:
    with pytest.raises(CommandError, match=r"\.$"):
        call_command("createtoken", *arguments)
    assert not ApiToken.objects.exists()


def test_disabled_person_gets_no_token(alice: User) -> None:
    alice.is_active = False
    alice.save()
    with pytest.raises(CommandError):
        call_command("createtoken", alice.email)
