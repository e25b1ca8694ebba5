"""`manage.py invite EMAIL`: make a person, and print the link where they choose a password."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.accounts import people
from webapp.accounts.errors import PeopleError
from webapp.accounts.models import Role, User


class Command(BaseCommand):
    help = (
        "Make a person and print the link where they choose a password. For somebody who is known "
        "already: --administrator raises their role, and the link lets them choose a new password."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="", help="as colleagues see it")
        parser.add_argument("--administrator", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            user, link = self._invite(**options)
        except PeopleError as error:
            raise CommandError(error.text) from None
        self.stderr.write(f"{user.email}, {user.get_role_display()}. Works once, for three days:")
        self.stdout.write(link)

    def _invite(self, *, email: str, name: str, administrator: bool, **_: Any) -> tuple[User, str]:
        user = User.objects.filter(email=User.objects.normalize_email(email)).first()
        if user is None:
            user = people.invite_person(email=email, name=name, invited_by=None)
        if not user.is_active:
            raise PeopleError(f"{email} is disabled; an administrator can enable the account.")
        if administrator:
            user = people.change_role(person=user, role=Role.ADMINISTRATOR, changed_by=None)
        return user, people.make_password_link(person=user, made_by=None)
