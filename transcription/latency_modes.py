"""Latency modes in people's words: the one list for every page and for the capture socket.

A short mode shows words sooner, a long one lets the engine hear more before it writes them.
"""

from __future__ import annotations

from collections.abc import Collection

HELP = "Shorter: words appear sooner. Longer: fewer mistakes."

_NAMES = {
    2: ("Fastest", "Most accurate"),
    3: ("Fastest", "Balanced", "Most accurate"),
    4: ("Fastest", "Fast", "Accurate", "Most accurate"),
    5: ("Fastest", "Fast", "Balanced", "Accurate", "Most accurate"),
}


def mode_choices(modes_ms: Collection[int]) -> list[tuple[int, str]]:
    """Each mode with its words, fastest first. Fewer than two modes are no choice: an empty list.

    Of more than five only the ends have names: no order of adjectives tells six apart.
    """
    modes = sorted(set(modes_ms))
    if len(modes) < 2:
        return []
    names = _NAMES.get(len(modes)) or ("Fastest", *[""] * (len(modes) - 2), "Most accurate")
    return [
        (mode_ms, f"{name} · {mode_ms} ms" if name else f"{mode_ms} ms")
        for mode_ms, name in zip(modes, names, strict=True)
    ]
