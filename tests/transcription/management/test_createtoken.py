"""`manage.py createtoken`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from webapp.accounts.models import Act, ApiToken, AuditEntry, Role, Scope, User
from webapp.accounts.tokens import token_of_secret


def make(*arguments: str) -> ApiToken:
    output = StringIO()
    call_command("createtoken", *arguments, stdout=output, stderr=StringIO())
    token = token_of_secret(output.getvalue().strip())
    assert token is not None
    assert output.getvalue().strip() not in (token.sha256, token.name)
    return token


def test_token_is_printed_once_and_stored_as_a_hash(alice: User) -> None:
    token = make("ALICE@example.org", "--days", "7", "--name", "OBS")
    assert (token.user, token.name) == (alice, "OBS")
    assert token.expires_at is not None
    assert token.expires_at - timezone.now() < timedelta(days=7, minutes=1)
    entry = AuditEntry.objects.get(act=Act.TOKEN_MADE)
    assert (entry.actor, entry.detail["owner"]) == (None, alice.email)


def test_scopes_are_those_named_or_what_tools_usually_do(alice: User, administrator: User) -> None:
    named = make(alice.email, "--scope", "live:read", "--scope", "recordings:read")
    assert named.scopes == ["live:read", "recordings:read"]
    usual = make(administrator.email)
    assert set(usual.scopes) == set(Scope) - {Scope.ADMINISTRATION, Scope.MONITOR}
    assert make(administrator.email, "--scope", "administration").allows(Scope.ADMINISTRATION)


def test_last_day_is_a_whole_one_and_never_has_none(alice: User) -> None:
    year = timezone.now().year + 1
    token = make(alice.email, "--expires", f"{year}-12-31")
    assert token.expires_at == datetime(year + 1, 1, 1, tzinfo=UTC)
    assert make(alice.email, "--expires", "never").expires_at is None


def test_service_account_is_made_once(db: None) -> None:
    first = make("Telephone exchange", "--service", "--scope", "monitor")
    second = make("telephone EXCHANGE", "--service")
    assert first.user == second.user == User.objects.get(role=Role.SERVICE)


@pytest.mark.parametrize(
    "arguments",
    [
        ["nobody@example.org"],
        ["alice@example.org", "--days=0"],
        ["alice@example.org", "--expires=2020-01-01"],
        ["alice@example.org", "--expires=2020-13-01"],
        ["alice@example.org", "--expires=soon"],
        ["alice@example.org", "--scope=administration"],
        ["alice@example.org", "--scope=monitor"],
        [" ", "--service"],
    ],
    ids=" ".join,
)
def test_impossible_token_is_refused_with_a_sentence(alice: User, arguments: list[str]) -> None:
    with pytest.raises(CommandError, match=r"\.$"):
        call_command("createtoken", *arguments)
    assert not ApiToken.objects.exists()


def test_disabled_person_and_account_get_no_token(alice: User) -> None:
    make("Exchange", "--service")
    User.objects.update(is_active=False)
    for arguments in ([alice.email], ["Exchange", "--service"]):
        with pytest.raises(CommandError):
            call_command("createtoken", *arguments)
    assert ApiToken.objects.count() == 1
