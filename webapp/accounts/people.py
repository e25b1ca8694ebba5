"""What administrators do to people: invite, disable, enable, change roles, help who is locked out.

Each act is audited in its transaction, and whatever takes a right away reaches open sockets. The
last active administrator stays one, and nobody locks themselves out. `None` for who does it is the
command line.
"""

from __future__ import annotations

from typing import Final, cast

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth import update_session_auth_hash
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import F
from django.http import HttpRequest

from webapp.accounts.audit import record_act
from webapp.accounts.backends import may_log_in
from webapp.accounts.errors import InvalidPersonError, PeopleError
from webapp.accounts.links import password_link
from webapp.accounts.models import Act, Role, User
from webapp.accounts.signals import tell_rights_changed

ROLES_OF_PEOPLE: Final = (Role.STAFF, Role.ADMINISTRATOR)


def invite_person(
    *, email: str, name: str = "", role: str = Role.STAFF, invited_by: User | None
) -> User:
    """Make a person without a password: `links.password_link` lets them choose one.

    Raises InvalidPersonError, PeopleError where the address is known.
    """
    email = _clean_address(email)
    _check_role(role)
    if User.objects.filter(email=email).exists():
        raise _known(email)
    rights = {"is_staff": role == Role.ADMINISTRATOR, "is_superuser": role == Role.ADMINISTRATOR}
    try:
        with transaction.atomic():
            person = User.objects.create_user(email, None, name=name.strip(), role=role, **rights)
            record_act(act=Act.INVITED, actor=invited_by, on=person, detail={"role": role})
    except IntegrityError:  # two at once pass the look
        raise _known(email) from None
    return person


def make_password_link(*, person: User, made_by: User | None) -> str:
    """An address where they choose a password: for the invited, and for whoever forgot theirs.

    It is a key to the account, so its making is audited. Raises PeopleError for whoever may not
    log in.
    """
    person = User.objects.get(pk=person.pk)  # a log-in meanwhile would make the link invalid
    if not may_log_in(person):
        raise PeopleError(f"{person} cannot log in, so there is no password to choose.")
    record_act(act=Act.INVITED, actor=made_by, on=person, detail={"by": "link"})
    return password_link(user=person)


def disable_person(*, person: User, disabled_by: User | None) -> User:
    """They are logged out everywhere, cannot log in, and their tokens lead nowhere.

    What they own stays. Raises PeopleError for the last administrator, and for oneself.
    """
    with transaction.atomic():
        administrators = _lock_administrators()
        person = User.objects.select_for_update().get(pk=person.pk)
        if not person.is_active:
            return person
        if person == disabled_by:
            raise PeopleError("You cannot disable yourself. Another administrator can.")
        _check_another_remains(administrators, person)
        person.is_active = False
        person.save(update_fields=["is_active"])
        _end_sessions(person)
        record_act(act=Act.DISABLED, actor=disabled_by, on=person)
    return person


def enable_person(*, person: User, enabled_by: User | None) -> User:
    """They may log in again, as before: password, second factors, teams and tokens are kept."""
    with transaction.atomic():
        person = User.objects.select_for_update().get(pk=person.pk)
        if person.is_active:
            return person
        person.is_active = True
        person.save(update_fields=["is_active"])
        record_act(act=Act.ENABLED, actor=enabled_by, on=person)
    return person


def change_role(*, person: User, role: str, changed_by: User | None) -> User:
    """Sessions go on: every page and socket asks for the role anew.

    Raises InvalidPersonError, PeopleError for the last administrator, and for oneself.
    """
    _check_role(role)
    with transaction.atomic():
        administrators = _lock_administrators()
        person = User.objects.select_for_update().get(pk=person.pk)
        if person.role == role:
            return person
        if person.role == Role.SERVICE:
            raise PeopleError("A service account is a tool and has no other role.")
        if person == changed_by:
            raise PeopleError("You cannot change your own role. Another administrator can.")
        if role != Role.ADMINISTRATOR:
            _check_another_remains(administrators, person)
        before, person.role = person.role, role
        person.is_staff = person.is_superuser = role == Role.ADMINISTRATOR
        person.save(update_fields=["role", "is_staff", "is_superuser"])
        detail = {"from": before, "to": str(role)}
        record_act(act=Act.ROLE_CHANGED, actor=changed_by, on=person, detail=detail)
        tell_rights_changed(user_id=person.pk)
    return person


def change_details(*, person: User, name: str, email: str, changed_by: User) -> User:
    """Mend a name or the address by which they log in.

    Raises InvalidPersonError, PeopleError where another has the address.
    """
    email = _clean_address(email)
    with transaction.atomic():
        person = User.objects.select_for_update().get(pk=person.pk)
        before, person.name, person.email = person.email, name.strip()[:150], email
        if email != before and User.objects.filter(email=email).exists():
            raise _known(email)
        person.save(update_fields=["name", "email"])
        if email != before:
            EmailAddress.objects.filter(user=person).delete()  # allauth's own note of the old one
            detail = {"from": before, "to": email}
            record_act(act=Act.ADDRESS_CHANGED, actor=changed_by, on=person, detail=detail)
    return person


def reset_factors(*, person: User, reset_by: User | None) -> int:
    """Forget their app, recovery codes and passkeys; the number of them. The password stays."""
    with transaction.atomic():
        count: int = Authenticator.objects.filter(user=person).delete()[0]
        if count:
            record_act(act=Act.FACTORS_RESET, actor=reset_by, on=person, detail={"count": count})
    return count


def end_sessions(*, person: User, ended_by: User | None) -> None:
    """Log them out of every browser, also of those that no list knows."""
    with transaction.atomic():
        _end_sessions(person)
        record_act(act=Act.SESSIONS_ENDED, actor=ended_by, on=person)


def end_session(*, session: UserSession, ended_by: User) -> None:
    """Log one browser out."""
    with transaction.atomic():
        Session.objects.filter(session_key=session.session_key).delete()
        session.delete()
        detail = {"address": session.ip}
        record_act(act=Act.SESSIONS_ENDED, actor=ended_by, on=session.user, detail=detail)
        tell_rights_changed(user_id=session.user_id)


def end_other_sessions(*, request: HttpRequest) -> None:
    """Log the person out everywhere but in the browser that asks."""
    person = cast("User", request.user)
    end_sessions(person=person, ended_by=person)
    person.refresh_from_db()
    update_session_auth_hash(request, person)
    UserSession.objects.create_from_request(request)


def _lock_administrators() -> set[int]:
    """The active ones, before anybody else is locked and in one order: two who disable each other
    at once wait for each other, and the second finds the first gone."""
    active = User.objects.filter(role=Role.ADMINISTRATOR, is_active=True)
    return set(active.select_for_update().order_by("pk").values_list("pk", flat=True))


def _check_another_remains(administrators: set[int], person: User) -> None:
    if administrators == {person.pk}:
        raise PeopleError(
            f"{person} is the last administrator. Make somebody else one first, or nobody could."
        )


def _clean_address(email: str) -> str:
    email = User.objects.normalize_email(email)
    try:
        validate_email(email)
    except ValidationError:
        raise InvalidPersonError(f"“{email}” is not an e-mail address.") from None
    return email


def _known(email: str) -> PeopleError:
    return PeopleError(f"{email} has an account already.")


def _check_role(role: str) -> None:
    if role not in ROLES_OF_PEOPLE:
        raise InvalidPersonError("A person is staff or an administrator.")


def _end_sessions(person: User) -> None:
    """The raised epoch ends every session; the rows go so that nothing lists what is over."""
    User.objects.filter(pk=person.pk).update(session_epoch=F("session_epoch") + 1)
    sessions = UserSession.objects.filter(user=person)
    keys = list(sessions.values_list("session_key", flat=True))
    Session.objects.filter(session_key__in=keys).delete()
    sessions.delete()
    tell_rights_changed(user_id=person.pk)
