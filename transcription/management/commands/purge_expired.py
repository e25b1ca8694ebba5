"""`manage.py purge_expired`: the purge of the night by hand, or what it would do."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from transcription.services import purge
from transcription.services.purge import counts_of
from transcription.templatetags.ui import size


class Command(BaseCommand):
    help = "End what the retention policies say is due. Every night the server does so by itself."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="list what would end, and change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["dry_run"]:
            self._dry_run()
            return
        run = purge.purge_now()
        if run is None:
            raise CommandError("A purge is running. Its report will be on the retention page.")
        if run.problem:
            self.stderr.write(run.problem)
        self._report(run.counts)

    def _dry_run(self) -> None:
        finding = purge.dry_run(timezone.now())
        if finding.problem:
            self.stderr.write(finding.problem)
        counts: Counter[str] = Counter()
        for step in finding.steps:
            counts.update(counts_of(step))
            self.stdout.write(f"{step.kind} {step.id}: {step.ending}")
        self._report(counts)

    def _report(self, counts: Mapping[str, int]) -> None:
        """The same lines for what was done and for what would be."""
        figures: Counter[str] = Counter(counts)
        self.stdout.write(f"audio removed: {figures['audio']} ({size(figures['audio_bytes'])})")
        self.stdout.write(f"moved to the trash: {figures['trashed']}")
        self.stdout.write(
            f"deleted for ever: {figures['deleted']} ({size(figures['deleted_bytes'])})"
        )
        others = figures["sessions"] + figures["uploads"]
        self.stdout.write(f"sessions without audio, and refused uploads: {others}")
