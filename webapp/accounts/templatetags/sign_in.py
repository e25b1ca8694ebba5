"""What the log-in page offers."""

from __future__ import annotations

from django import template

from webapp.accounts.sign_up import is_open

register = template.Library()


@register.simple_tag
def sign_up_is_open() -> bool:
    """Whether people may make an account by themselves."""
    return is_open()
