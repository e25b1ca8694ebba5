"""A token stands for its active person until it expires, and notes its use seldom."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from webapp.accounts.models import ApiToken, User
from webapp.accounts.tokens import USE_IS_NOTED_EVERY, user_of_token


def test_a_token_leads_to_its_person(alice: User, bob: User) -> None:
    _, secret = ApiToken.issue(user=alice, name="tool")
    ApiToken.issue(user=bob, name="other")
    assert user_of_token(secret) == alice
    assert user_of_token(secret + "x") is None
    assert user_of_token("") is None


def test_the_secret_is_stored_nowhere(alice: User) -> None:
    token, secret = ApiToken.issue(user=alice, name="tool")
    assert secret not in {str(value) for value in vars(token).values()}


def test_expired_tokens_and_those_of_disabled_people_lead_nowhere(alice: User) -> None:
    now = timezone.now()
    _, expired = ApiToken.issue(user=alice, name="old", expires_at=now)
    _, valid = ApiToken.issue(user=alice, name="new", expires_at=now + timedelta(days=1))
    assert user_of_token(expired) is None
    assert user_of_token(valid) == alice
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert user_of_token(valid) is None


def test_use_is_noted_once_in_a_while(
    alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    token, secret = ApiToken.issue(user=alice, name="tool")
    user_of_token(secret)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    user_of_token(secret)
    token.refresh_from_db()
    assert token.last_used_at == first
    ApiToken.objects.update(last_used_at=first - USE_IS_NOTED_EVERY * 2)
    with django_assert_num_queries(2):
        user_of_token(secret)
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert token.last_used_at >= first
