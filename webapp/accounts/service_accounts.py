"""Service accounts: the organisation's tools, which own recordings as people do and cannot log in.

Their tokens are made and revoked by administrators. Disabling one is as disabling a person
(`accounts.people`).
"""

from __future__ import annotations

import secrets
from typing import Final

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.text import slugify

from webapp.accounts.audit import record_act
from webapp.accounts.errors import InvalidPersonError, PeopleError
from webapp.accounts.models import Act, Role, User

DOMAIN: Final = "service.invalid"
"""Of the addresses that stand in for an e-mail address: no mail can go there (RFC 2606)."""


def make_service_account(*, name: str, made_by: User | None) -> User:
    """Raises InvalidPersonError without a name, PeopleError where another has it."""
    name = name.strip()[:150]
    if not name:
        raise InvalidPersonError("Say what the service account is for.")
    with transaction.atomic():
        if service_accounts().filter(name__iexact=name).exists():
            raise PeopleError(f"There is a service account “{name}” already.")
        account = User.objects.create_user(
            _stand_in_address(name), None, name=name, role=Role.SERVICE
        )
        record_act(act=Act.CREATED, actor=made_by, on=account, detail={"role": Role.SERVICE})
    return account


def service_accounts() -> QuerySet[User]:
    """By name, each with the number of its `valid_tokens`."""
    valid = Q(api_tokens__revoked_at=None) & (
        Q(api_tokens__expires_at=None) | Q(api_tokens__expires_at__gt=timezone.now())
    )
    return (
        User.objects.filter(role=Role.SERVICE)
        .annotate(valid_tokens=Count("api_tokens", filter=valid))
        .order_by("name", "pk")
    )


def _stand_in_address(name: str) -> str:
    """Readable, since the audit log names people by address."""
    address = f"{slugify(name)[:60] or 'tool'}@{DOMAIN}"
    if User.objects.filter(email__iexact=address).exists():
        return address.replace("@", f"-{secrets.token_hex(4)}@")
    return address
