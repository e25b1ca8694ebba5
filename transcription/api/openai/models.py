"""What a client may name as its model: how much trouble the server takes, not which network.

Which network hears is the administrator's choice (`ASR_BATCH_MODEL`), the same for everybody.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

REFINED: Final = "transcribe"
"""Both passes."""
DRAFT: Final = "transcribe-draft"
"""The draft pass alone: sooner, not as good."""
ALIASES: Final = MappingProxyType(
    {
        "whisper-1": REFINED,
        "gpt-transcribe": REFINED,
        "gpt-4o-transcribe": REFINED,
        "gpt-4o-mini-transcribe": DRAFT,
    }
)
"""Names that existing clients have built in."""
OWNER: Final = "transcription-server"
CREATED: Final = 1_767_225_600
"""The first second of 2026, for all: clients want a number."""


def model_named(name: str) -> str | None:
    """REFINED or DRAFT; None for a name that is neither theirs nor an alias."""
    return name if name in {REFINED, DRAFT} else ALIASES.get(name)


def described(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": OWNER}


def all_described() -> list[dict[str, Any]]:
    return [described(name) for name in (REFINED, DRAFT, *ALIASES)]
