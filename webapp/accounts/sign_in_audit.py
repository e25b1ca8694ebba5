"""What Django and allauth tell of log-ins, passwords, second factors and changes under `/admin/`,
written to the audit log.

Connected by the app's `ready`.
"""

from __future__ import annotations

from typing import Any

from allauth.account.signals import password_changed, password_reset, password_set
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed, authenticator_added, authenticator_removed
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models.signals import post_save

from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, User


def _logged_in(user: User, **_: Any) -> None:
    record_act(act=Act.LOGGED_IN, actor=user)


def _logged_out(user: User | None, **_: Any) -> None:
    if user is not None:
        record_act(act=Act.LOGGED_OUT, actor=user)


def _log_in_failed(credentials: dict[str, Any], **_: Any) -> None:
    """Whose account it was, where there is one. Of others nothing is kept: people sometimes type
    their password into the field above it."""
    address = credentials.get("email") or credentials.get("username") or ""
    person = User.objects.filter(email__iexact=str(address)[:254]).first()
    record_act(act=Act.LOG_IN_FAILED, actor=None, on=person)


def _second_factor_failed(user: User, **_: Any) -> None:
    record_act(act=Act.LOG_IN_FAILED, actor=None, on=user, detail={"step": "second factor"})


def _password_changed(user: User, **_: Any) -> None:
    record_act(act=Act.PASSWORD_CHANGED, actor=user, on=user)


def _password_reset(user: User, **_: Any) -> None:
    """By a link: who has it is taken for the person."""
    record_act(act=Act.PASSWORD_CHANGED, actor=user, on=user, detail={"by": "link"})


def _factor_added(user: User, authenticator: Authenticator, **_: Any) -> None:
    record_act(act=Act.FACTOR_ADDED, actor=user, on=user, detail={"kind": authenticator.type})


def _factor_removed(user: User, authenticator: Authenticator, **_: Any) -> None:
    record_act(act=Act.FACTOR_REMOVED, actor=user, on=user, detail={"kind": authenticator.type})


def _table_changed(instance: LogEntry, created: bool, **_: Any) -> None:
    """Somebody used Django's own administration. It tells a deletion before it happens."""
    act = {ADDITION: Act.CREATED, DELETION: Act.DELETED}.get(instance.action_flag, Act.EDITED)
    if created:
        actor = User.objects.get(pk=instance.user_id)
        on = instance.get_edited_object()
        record_act(act=act, actor=actor, on=on, detail={"by": "the tables"})


def connect_signals() -> None:
    post_save.connect(_table_changed, sender=LogEntry, dispatch_uid="audit_table_changed")
    for signal, receiver in (
        (user_logged_in, _logged_in),
        (user_logged_out, _logged_out),
        (user_login_failed, _log_in_failed),
        (authentication_failed, _second_factor_failed),
        (password_changed, _password_changed),
        (password_set, _password_changed),
        (password_reset, _password_reset),
        (authenticator_added, _factor_added),
        (authenticator_removed, _factor_removed),
    ):
        signal.connect(receiver, dispatch_uid=f"audit{receiver.__name__}")
