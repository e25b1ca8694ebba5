"""System checks: what would fail at run time is said at start, with the command that mends it.

Nothing here asks a server or loads a model: `/readyz` does the one, the engine's own start the
other. A missing model only warns (docs/decisions/0008-a-missing-model-warns.md).
Ids: `transcription.E001` data directory, `W001` a model, `W002` an unknown variable,
`W003` the language model's library, `W004` a folder that recordings come from, `E002` the signing
key. What is asked only before a server is opened (`check --deploy`) stands in `deploy_checks`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.checks import CheckMessage, Tags, register
from pydantic_settings import BaseSettings

from asr_engine.config import EngineSettings, engine_settings
from asr_engine.store import MODELS, ModelState, ModelStore
from webapp.config import Settings, named_variables, site_settings
from webapp.weak_secrets import weak_key

PREFIXES: dict[str, type[BaseSettings]] = {"TRANSCRIBE_": Settings, "ASR_": EngineSettings}


@register(Tags.files)
def check_data_dir(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """The data directory must exist and be ours to write."""
    directory = site_settings().data_dir
    if os.access(directory, os.W_OK | os.X_OK):
        return []
    return [
        checks.Error(
            f"The data directory {directory} cannot be written.",
            hint="Run `make setup` as the user who runs the server, or name another with DATA=.",
            id="transcription.E001",
        )
    ]


@register(Tags.security)
def check_signing_key(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Whoever guesses it makes a session of anybody."""
    problem = weak_key(site_settings())
    if not problem:
        return []
    return [
        checks.Error(
            problem, hint="`make setup` makes one in settings.env.", id="transcription.E002"
        )
    ]


@register(Tags.files)
def check_intake(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """The folders that recordings come from must be there; the watch folder needs an owner."""
    site = site_settings()
    problems = [
        f"The intake folder {folder} cannot be read."
        for folder in site.intake_roots
        if not (folder.is_absolute() and os.access(folder, os.R_OK | os.X_OK))
    ]
    if site.watch_folder:
        folder = Path(site.watch_folder)
        if not (folder.is_absolute() and os.access(folder, os.R_OK | os.W_OK | os.X_OK)):
            problems.append(f"The watch folder {folder} cannot be read and written.")
        if not site.watch_owner:
            problems.append("The watch folder has no owner: nothing is taken from it.")
    hint = "Name them by absolute paths that the server's user may open; see docs/operations.md."
    return [checks.Warning(problem, hint=hint, id="transcription.W004") for problem in problems]


@register(Tags.files)
def check_models(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """The models that the configuration names must be in the store."""
    settings = engine_settings()
    store = ModelStore(settings.model_dir)
    states = {status.entry.name: status.state for status in store.status()}
    return [
        checks.Warning(
            f"The speech model {name} is {states.get(name, ModelState.MISSING)} in "
            f"{settings.model_dir}.",
            hint=(
                f"Run `manage.py models fetch {name}`."
                if name in MODELS
                else f"Run `manage.py models add {name} FILE`."
            ),
            id="transcription.W001",
        )
        for name in sorted(settings.models_needed())
        if states.get(name) != ModelState.INSTALLED
    ]


@register()
def check_language_model_library(
    *, app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[CheckMessage]:
    """A language model that is configured has no say where its library is missing."""
    if not engine_settings().lm or find_spec("kenlm"):
        return []
    return [
        checks.Warning(
            "ASR_LM names a language model, but KenLM is not installed.",
            hint="Run `pip install -r requirements/lm.txt`.",
            id="transcription.W003",
        )
    ]


@register()
def check_variables(*, app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """A misspelt variable is otherwise ignored in silence."""
    return [
        checks.Warning(
            f"There is no setting {name}.",
            hint=f"Did you mean {meant[0]}?" if meant else "docs/settings.md lists all.",
            id="transcription.W002",
        )
        for name, meant in unknown_variables(named_variables(site_settings().data_dir))
    ]


def unknown_variables(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Names with our prefixes that no setting has, each with the closest one that exists."""
    unknown = []
    for name in sorted(names):
        for prefix, settings in PREFIXES.items():
            known = [f"{prefix}{field}".upper() for field in settings.model_fields]
            if name.startswith(prefix) and name not in known:
                unknown.append((name, difflib.get_close_matches(name, known, n=1)))
    return unknown
