"""Second factors and passkeys in the words of this product: allauth.mfa's adapter and forms."""

from __future__ import annotations

from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base import forms as base
from allauth.mfa.models import Authenticator
from allauth.mfa.totp import forms as totp
from allauth.mfa.webauthn import forms as webauthn
from django.contrib.auth.base_user import AbstractBaseUser

CODE = "Code"


class FactorAdapter(DefaultMFAAdapter):
    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "This code or key is not the right one, or it has run out. Try again.",
    }

    def generate_authenticator_name(
        self,
        user: AbstractBaseUser,
        type: Authenticator.Type,  # noqa: A002 - allauth names it
    ) -> str:
        """Proposed for a new key; its person gives it a better one."""
        count = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return "My passkey" if count == 0 else f"Passkey {count + 1}"


class AuthenticateForm(base.AuthenticateForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _ask_for_code(self)


class ReauthenticateForm(base.ReauthenticateForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _ask_for_code(self)


class ActivateAppForm(totp.ActivateTOTPForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _ask_for_code(self)


class AddKeyForm(webauthn.AddWebAuthnForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["initial"] = {"passwordless": True, **kwargs.get("initial", {})}
        super().__init__(*args, **kwargs)
        self.fields["name"].label = "Name"
        self.fields["name"].help_text = "To tell your keys apart: “Telephone”, “Key on my ring”."
        self.fields["passwordless"].label = "Log in by it alone, without my password"
        self.fields["passwordless"].help_text = (
            "It then asks for your finger, your face or its PIN. Without, it is a second factor "
            "after the password."
        )


class EditKeyForm(webauthn.EditWebAuthnForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].label = "Name"
        self.fields["name"].widget.attrs["autofocus"] = True


def _ask_for_code(form: Any) -> None:
    field = form.fields["code"]
    field.label = CODE
    field.widget.attrs = {"autocomplete": "one-time-code", "autofocus": True}
