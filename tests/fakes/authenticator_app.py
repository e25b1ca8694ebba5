"""The authenticator app on a person's telephone."""

from __future__ import annotations

from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)


def code_of(secret: str) -> str:
    """What the app shows now for the key that it was given."""
    return format_hotp_value(hotp_value(secret, next(iter(yield_hotp_counters_from_time()))))
