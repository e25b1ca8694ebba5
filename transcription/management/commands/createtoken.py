"""`manage.py createtoken`: a key for a tool, shown once."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime, time, timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_date

from webapp.accounts.errors import PeopleError
from webapp.accounts.models import Scope, User
from webapp.accounts.service_accounts import make_service_account, service_accounts
from webapp.accounts.tokens import make_token, scopes_open_to

USUAL_SCOPES: Final = frozenset(Scope) - {Scope.ADMINISTRATION, Scope.MONITOR}
"""Of a token for which none was named: what a tool does with recordings and captions."""
NEVER: Final = "never"


class Command(BaseCommand):
    help = (
        "Make an API token for a tool of a person or of a service account, and print it. "
        "It is stored nowhere."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "owner",
            help="e-mail address of a person, or with --service the name of a service account",
        )
        parser.add_argument(
            "--service",
            action="store_true",
            help="the owner is a service account; it is made where there is none of that name",
        )
        parser.add_argument("--name", default="command line", help="what the token is for")
        parser.add_argument(
            "--scope",
            action="append",
            choices=[scope.value for scope in Scope],
            help="what it may be used for; may be given several times (default: everything but "
            "administration and monitor)",
        )
        until = parser.add_mutually_exclusive_group()
        until.add_argument("--days", type=int, default=365, help="until it expires")
        until.add_argument(
            "--expires",
            metavar="DATE",
            help=f"the last day on which it works, as 2027-12-31 (UTC), or `{NEVER}`",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        expires_at = _expiry(options)
        owner = _owner(options["owner"], is_service=options["service"])
        open_scopes = set(scopes_open_to(owner))
        scopes = {Scope(value) for value in options["scope"] or USUAL_SCOPES & open_scopes}
        if not scopes <= open_scopes:
            closed = ", ".join(sorted(scopes - open_scopes))
            raise CommandError(f"{owner} may not do what the scope says: {closed}.")
        _, secret = make_token(
            user=owner,
            name=options["name"],
            scopes=scopes,
            expires_at=expires_at,
            made_by=None,
        )
        until = f"until {expires_at:%d %b %Y, %H:%M} UTC" if expires_at else "until it is revoked"
        self.stdout.write(secret)
        self.stderr.write(f"Valid {until}. It is shown only now.")


def _owner(name: str, *, is_service: bool) -> User:
    if not is_service:
        person = User.objects.filter(email__iexact=name, is_active=True).first()
        if person is None:
            raise CommandError(f"There is no active person with the address {name}.")
        return person
    account = service_accounts().filter(name__iexact=name).first()
    if account is None:
        try:
            return make_service_account(name=name, made_by=None)
        except PeopleError as error:
            raise CommandError(error.text) from None
    if not account.is_active:
        raise CommandError(f"The service account {account} is disabled.")
    return account


def _expiry(options: dict[str, Any]) -> datetime | None:
    named = options["expires"]
    if named == NEVER:
        return None
    if named is None:
        expires_at = timezone.now() + timedelta(days=options["days"])
    else:
        try:
            day = parse_date(named)
        except ValueError:
            day = None
        if day is None:
            raise CommandError(f"“{named}” is no date. Write it as 2027-12-31.")
        expires_at = datetime.combine(day, time(), timezone.get_default_timezone())
        expires_at += timedelta(days=1)
    if expires_at <= timezone.now():
        raise CommandError("A token lasts at least one day.")
    return expires_at
