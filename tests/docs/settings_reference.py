"""Writes docs/settings.md and .env.example from the docstrings of the settings classes.

    python -m tests.docs.settings_reference

`test_settings_reference.py` fails while the files differ from what this writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from asr_engine.config import EngineSettings
from webapp.config import Settings

ROOT = Path(__file__).resolve().parent.parent.parent
REFERENCE = ROOT / "docs" / "settings.md"
EXAMPLE = ROOT / ".env.example"

HEAD = """\
# Settings

Written from the settings classes by `python -m tests.docs.settings_reference`; do not edit.

Every setting is an environment variable. Each may also stand in `settings.env` in the data
directory, which `make setup` makes; the environment wins over that file. A variable with a prefix
below that no setting has is named by `manage.py check`. What administrators change while the server
runs is not here: it lives in the database.
"""

GROUPS: tuple[tuple[str, type[BaseSettings], str], ...] = (
    ("The site", Settings, "TRANSCRIBE_"),
    ("The speech engine", EngineSettings, "ASR_"),
)

EXAMPLE_HEAD = """\
# An example of settings.env, or of the environment of a container: every setting with its default.
# docs/settings.md says what each one means. `make setup` makes the secrets of an embedded server;
# elsewhere give your own: nothing secret has a default.
"""


def name_of(prefix: str, field: str) -> str:
    return f"{prefix}{field}".upper()


def default_of(field: FieldInfo) -> str | None:
    """As written in the environment; None where the setting must be given."""
    if field.is_required():
        return None
    value = field.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Path):
        return str(value.relative_to(ROOT)) if value.is_relative_to(ROOT) else str(value)
    return str(value)


def values_of(field: FieldInfo) -> str:
    if get_origin(field.annotation) is Literal:
        return " One of " + ", ".join(f"`{item}`" for item in get_args(field.annotation)) + "."
    return ""


def reference() -> str:
    parts = [HEAD]
    for title, settings, prefix in GROUPS:
        parts.append(f"\n## {title}\n\n| variable | default | meaning |\n|---|---|---|\n")
        for name, field in settings.model_fields.items():
            default = default_of(field)
            shown = "must be given" if default is None else f"`{default}`" if default else "empty"
            meaning = " ".join((field.description or "").split()).replace("|", "\\|")
            parts.append(f"| `{name_of(prefix, name)}` | {shown} | {meaning}{values_of(field)} |\n")
    return "".join(parts)


def example() -> str:
    parts = [EXAMPLE_HEAD]
    for title, settings, prefix in GROUPS:
        parts.append(f"\n# {title}\n")
        for name, field in settings.model_fields.items():
            default = default_of(field)
            parts.append(
                f"{'' if default is None else '#'}{name_of(prefix, name)}={default or ''}\n"
            )
    return "".join(parts)


def main() -> None:
    REFERENCE.write_text(reference())
    EXAMPLE.write_text(example())


if __name__ == "__main__":
    main()
