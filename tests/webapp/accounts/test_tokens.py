"""A token stands for its active person until it expires, and notes its use seldom."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from webapp.accounts.models import Act, ApiToken, AuditEntry, Role, Scope, User
from webapp.accounts.tokens import (
    USE_IS_NOTED_EVERY,
    make_token,
    may_monitor,
    revoke_token,
    scopes_open_to,
    token_of_secret,
)


def owner_of(secret: str) -> User | None:
    token = token_of_secret(secret)
    return None if token is None else token.user


def test_a_token_leads_to_its_person(alice: User, bob: User) -> None:
    _, secret = ApiToken.issue(user=alice, name="tool")
    ApiToken.issue(user=bob, name="other")
    assert owner_of(secret) == alice
    for unknown in (secret + "x", "", "\ud800"):
        assert token_of_secret(unknown) is None


def test_the_secret_is_stored_nowhere(alice: User) -> None:
    token, secret = ApiToken.issue(user=alice, name="tool")
    assert secret not in {str(value) for value in vars(token).values()}


def test_expired_tokens_and_those_of_disabled_people_lead_nowhere(alice: User) -> None:
    now = timezone.now()
    _, expired = ApiToken.issue(user=alice, name="old", expires_at=now)
    _, valid = ApiToken.issue(user=alice, name="new", expires_at=now + timedelta(days=1))
    assert token_of_secret(expired) is None
    assert owner_of(valid) == alice
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert token_of_secret(valid) is None


def test_use_is_noted_once_in_a_while(
    alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    token, secret = ApiToken.issue(user=alice, name="tool")
    token_of_secret(secret)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    token_of_secret(secret)
    token.refresh_from_db()
    assert token.last_used_at == first
    ApiToken.objects.update(last_used_at=first - USE_IS_NOTED_EVERY * 2)
    with django_assert_num_queries(5):  # the note and a look for its audit entry, in a transaction
        token_of_secret(secret)
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert token.last_used_at >= first


def test_revoked_token_leads_nowhere_and_says_so_once(alice: User, administrator: User) -> None:
    token, secret = make_token(
        user=alice, name="tool", scopes=[Scope.LIVE_READ], expires_at=None, made_by=alice
    )
    revoke_token(token=token, revoked_by=administrator)
    revoke_token(token=token, revoked_by=administrator)
    assert token_of_secret(secret) is None
    acts = AuditEntry.objects.order_by("id").values_list("act", "actor_name", "detail")
    assert list(acts) == [
        (Act.TOKEN_MADE, alice.email, {"owner": alice.email, "scopes": "live:read"}),
        (Act.TOKEN_REVOKED, administrator.email, {"owner": alice.email}),
    ]


def test_use_is_in_the_audit_log_without_the_secret(alice: User) -> None:
    token, secret = ApiToken.issue(user=alice, name="tool")
    token_of_secret(secret)
    entry = AuditEntry.objects.get(act=Act.TOKEN_USED)
    assert (entry.actor, entry.subject_id) == (alice, str(token.pk))
    assert not any(secret in str(value) for value in vars(entry).values())


@pytest.mark.parametrize("role", Role)
def test_no_scope_promises_what_its_person_may_not_do(role: Role, alice: User) -> None:
    alice.role = role
    is_open = {scope: scope in scopes_open_to(alice) for scope in Scope}
    assert is_open[Scope.ADMINISTRATION] == (role == Role.ADMINISTRATOR)
    assert is_open[Scope.MONITOR] == (role != Role.STAFF)
    assert is_open[Scope.RECORDINGS_WRITE]


@pytest.mark.parametrize("scopes", [[], [Scope.LIVE_READ, Scope.ADMINISTRATION]])
def test_token_without_an_open_scope_is_not_made(scopes: list[Scope], alice: User) -> None:
    with pytest.raises(ValueError, match="scopes"):
        make_token(user=alice, name="tool", scopes=scopes, expires_at=None, made_by=alice)
    assert not ApiToken.objects.exists()


def test_monitoring_needs_the_scope_and_the_right(alice: User, administrator: User) -> None:
    _, lacking = ApiToken.issue(user=administrator, name="tool", scopes=[Scope.LIVE_READ])
    _, staff = ApiToken.issue(user=alice, name="tool", scopes=[Scope.MONITOR])
    _, good = ApiToken.issue(user=administrator, name="tool", scopes=[Scope.MONITOR])
    assert [may_monitor(secret) for secret in (lacking, staff, good, "")] == [
        False,
        False,
        True,
        False,
    ]
