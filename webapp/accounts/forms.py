"""The account forms of allauth in the words of this product.

Labels are in sentence case, no placeholder repeats its label, and the field to fill has the focus.
"""

from __future__ import annotations

from typing import Any

from allauth.account import forms as allauth
from django import forms

ADDRESS = "E-mail address"


def _say(form: forms.Form, *, focus: str, **labels: str) -> None:
    for name, label in labels.items():
        form.fields[name].label = label
    for field in form.fields.values():
        field.widget.attrs.pop("placeholder", None)
    form.fields[focus].widget.attrs["autofocus"] = True


class LoginForm(allauth.LoginForm):
    """After a refusal the address stands: only the password is to be typed again."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        focus = "password" if self.data.get("login") else "login"
        _say(self, focus=focus, login=ADDRESS)


class ChangePasswordForm(allauth.ChangePasswordForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _say(
            self,
            focus="oldpassword",
            oldpassword="Current password",
            password1="New password",
            password2="New password again",
        )


class ResetPasswordForm(allauth.ResetPasswordForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _say(self, focus="email", email=ADDRESS)


class ResetPasswordKeyForm(allauth.ResetPasswordKeyForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _say(self, focus="password1", password1="New password", password2="New password again")


class SetPasswordForm(allauth.SetPasswordForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _say(self, focus="password1", password1="New password", password2="New password again")


class ReauthenticateForm(allauth.ReauthenticateForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _say(self, focus="password")
