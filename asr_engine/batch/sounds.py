"""How near texts are in sound, in any script: a rough spelling of it, and the edits between two.

Everything is first written in Latin letters (Han characters by their pinyin). Then letters that
are mostly heard alike become one: what remains is no pronunciation, but two spellings of a name by
people who only heard it come close.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from anyascii import anyascii
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

_ALIKE: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"[^a-z]", ""),
        (r"tch|ch|sch|sh|j", "x"),
        (r"c(?=[eiy])|z", "s"),
        (r"ph|gh(?=t?$)|v", "f"),
        (r"qu|ck|[cqg]", "k"),
        (r"th|d", "t"),
        (r"b", "p"),
        (r"m", "n"),
        (r"(?<=.)h", ""),
        (r"w", "u"),
        (r"y|ie|ei|ee|ea", "i"),
        (r"(.)\1+", r"\1"),
        (r"(?<=[^aeiou])e$", ""),
    )
)
_VOWELS: Final = re.compile(r"[aeiou]+")


@functools.lru_cache(maxsize=20_000)
def sound_of(text: str) -> str:
    """A rough spelling of how `text` sounds; empty where nothing is spoken."""
    sound = str(anyascii(text)).lower()
    for pattern, written in _ALIKE:
        sound = pattern.sub(written, sound)
    return sound


def nearness(sounds: Sequence[str], others: Sequence[str]) -> NDArray[np.float32]:
    """[n, m], 0 to 100, of each of n sounds to each of m others.

    Consonants weigh as much as all letters: vowels are heard worse.
    """
    letters = _ratios(sounds, others)
    consonants = _ratios(_with_one_vowel(sounds), _with_one_vowel(others))
    mean: NDArray[np.float32] = (letters + consonants) / np.float32(2)
    return mean


def _with_one_vowel(sounds: Sequence[str]) -> list[str]:
    return [_VOWELS.sub("a", sound) for sound in sounds]


def _ratios(sounds: Sequence[str], others: Sequence[str]) -> NDArray[np.float32]:
    ratios: NDArray[Any] = process.cdist(sounds, others, scorer=fuzz.ratio, dtype=np.float32)
    return ratios
