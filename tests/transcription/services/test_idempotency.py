"""Requests that come again: claimed once, and taken up where a process died."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from transcription.errors import KeyReusedError, StillAnsweringError
from transcription.models import IdempotentRequest
from transcription.services import idempotency
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db


def claim(user: User, fingerprint: str = "same") -> IdempotentRequest:
    return idempotency.claim_request(user=user, key="key", fingerprint=fingerprint)


def age(by: timedelta) -> None:
    IdempotentRequest.objects.update(created_at=timezone.now() - by)


def test_the_second_one_waits_for_the_first(alice: User) -> None:
    claim(alice)
    with pytest.raises(StillAnsweringError):
        claim(alice)


def test_an_answer_is_given_again(alice: User) -> None:
    request = claim(alice)
    idempotency.store_answer(request=request, status=201, headers={"A": "b"}, body="{}")
    again = claim(alice)
    assert (again.status, again.headers, again.body) == (201, {"A": "b"}, "{}")


def test_a_key_belongs_to_one_request_of_one_person(alice: User, bob: User) -> None:
    claim(alice)
    with pytest.raises(KeyReusedError):
        claim(alice, fingerprint="another")
    assert claim(bob, fingerprint="another").status is None


def test_what_was_not_done_may_be_tried_again(alice: User) -> None:
    idempotency.give_up(request=claim(alice))
    assert claim(alice).status is None


def test_a_claim_whose_process_died_is_taken_up_by_one(alice: User) -> None:
    claim(alice)
    age(idempotency.CLAIM_EXPIRY + timedelta(seconds=1))
    assert claim(alice).status is None
    with pytest.raises(StillAnsweringError):
        claim(alice)


def test_an_old_key_is_as_new(alice: User) -> None:
    idempotency.store_answer(request=claim(alice), status=201, headers={}, body="")
    age(idempotency.KEPT_FOR + timedelta(seconds=1))
    assert claim(alice, fingerprint="another").status is None


def test_old_requests_are_forgotten(alice: User) -> None:
    claim(alice)
    idempotency.forget_old_requests()
    assert IdempotentRequest.objects.count() == 1
    age(idempotency.KEPT_FOR + timedelta(seconds=1))
    idempotency.forget_old_requests()
    assert not IdempotentRequest.objects.exists()
