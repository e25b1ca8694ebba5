"""`manage.py invite EMAIL`: make a person, and print the link where they choose a password."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email

from webapp.accounts.links import password_link
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
        email = User.objects.normalize_email(options["email"])
        try:
            validate_email(email)
        except ValidationError:
            raise CommandError(f"{email} is not an e-mail address.") from None
        user = User.objects.filter(email__iexact=email).first()
        if user is None:
            user = User.objects.create_user(email, None, name=options["name"])
        if not user.is_active:
            raise CommandError(f"{email} is disabled; an administrator can enable the account.")
        if options["administrator"]:
            user.role = Role.ADMINISTRATOR
            user.is_staff = user.is_superuser = True
            user.save(update_fields=["role", "is_staff", "is_superuser"])
        self.stderr.write(f"{user.email}, {user.get_role_display()}. Works once, for three days:")
        self.stdout.write(password_link(user=user))
