"""What a speaker is called: the name that somebody gave, or one made of the label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CHANNELS: Final = {"left": "Left", "right": "Right"}
"""Speakers of a call that has a channel for each."""


def shown_name(label: str, names: Mapping[str, str]) -> str:
    """The name for a segment's speaker; "" for a segment that has none."""
    if not label:
        return ""
    return names.get(label) or CHANNELS.get(label) or f"Speaker {label}"
