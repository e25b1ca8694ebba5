"""`manage.py createtoken`: a key for a tool, shown once."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from webapp.accounts.models import ApiToken, User


class Command(BaseCommand):
    help = "Make an API token for a person's tool and print it. It is stored nowhere."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", help="whose things the tool may use")
        parser.add_argument("--name", default="command line", help="what it is for")
        parser.add_argument("--days", type=int, default=365, help="until it expires")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(email__iexact=options["email"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active person with the address {options['email']}.")
        if options["days"] < 1:
            raise CommandError("A token lasts at least one day.")
        expires_at = timezone.now() + timedelta(days=options["days"])
        _, secret = ApiToken.issue(user=user, name=options["name"][:100], expires_at=expires_at)
        self.stdout.write(secret)
        self.stderr.write(f"Valid until {expires_at:%d %b %Y}. It is shown only now.")
