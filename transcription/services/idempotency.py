"""Requests that a tool repeats because it never got the answer: done once, answered alike.

The row of a key is the claim. What is done for it and its answer are stored in one transaction
where the act allows that; a claim whose process died may be taken up again after CLAIM_EXPIRY.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from transcription.errors import KeyReusedError, StillAnsweringError
from transcription.models import IdempotentRequest
from webapp.accounts.models import User

KEPT_FOR: Final = timedelta(hours=24)
CLAIM_EXPIRY: Final = timedelta(minutes=2)
"""Longer than any request takes."""


def claim_request(*, user: User, key: str, fingerprint: str) -> IdempotentRequest:
    """The row of this request; with a `status` it was answered before, else it is ours to answer.

    Raises KeyReusedError for a key of another request, StillAnsweringError while another process
    answers this one.
    """
    now = timezone.now()
    own = IdempotentRequest.objects.filter(user=user, key=key)
    own.filter(created_at__lt=now - KEPT_FOR).delete()
    try:
        with transaction.atomic():
            return own.create(user=user, key=key, fingerprint=fingerprint)
    except IntegrityError:
        request = own.first()
    if request is None:
        raise StillAnsweringError
    if request.fingerprint != fingerprint:
        raise KeyReusedError
    if request.status is None:
        lost = own.filter(status=None, created_at__lt=now - CLAIM_EXPIRY)
        if not lost.update(created_at=now):
            raise StillAnsweringError
    return request


def store_answer(
    *, request: IdempotentRequest, status: int, headers: Mapping[str, str], body: str
) -> None:
    """What every repetition of the request is answered from now on."""
    IdempotentRequest.objects.filter(pk=request.pk).update(
        status=status, headers=dict(headers), body=body
    )


def give_up(*, request: IdempotentRequest) -> None:
    """It was not done: the same key may be tried again."""
    IdempotentRequest.objects.filter(pk=request.pk, status=None).delete()


def forget_old_requests() -> None:
    """Remove what nobody repeats any more."""
    IdempotentRequest.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
