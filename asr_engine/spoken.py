"""What of a text is spoken: its words, or characters where a script writes no spaces.

Without case and punctuation, so that two spellings of one sound of a sentence compare equal.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_UNSPACED: Final = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Scripts without spaces between words, and Hangul, whose words are long."""
_UNIT: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+(?:['’][^\W_{_UNSPACED}]+)*")


def spoken_units(text: str) -> list[str]:
    """Words in lower case, apostrophes inside kept; each sign of an unspaced script by itself."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return _UNIT.findall(folded)
