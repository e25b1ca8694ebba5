"""Scores of transcripts against references: word and character error rates, and their report.

Words are compared after Whisper's English normaliser (its basic one for other languages),
characters after dropping everything but letters and digits. Chinese is converted to simplified
characters on both sides first: which script a model writes is a choice, not an error.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

CHARACTER_LANGUAGES: Final = frozenset({"zh", "yue", "ja", "ko", "th", "mul"})
"""Scored by characters: they put no spaces between words (`mul` mixes languages)."""
CHINESE_LANGUAGES: Final = frozenset({"zh", "yue", "mul"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a manifest. `text` "" means that nobody speaks; None that it is not known.

    `turns` are (start, end, speaker) in seconds, empty where they are not known.
    """

    file: str
    path: Path
    text: str | None
    language: str | None
    seconds: float
    quality: str
    is_scored: bool
    turns: tuple[tuple[float, float, str], ...] = ()

    @property
    def folder(self) -> str:
        return str(PurePosixPath(self.file).parent)


def read_manifest(path: Path) -> Iterator[Entry]:
    """Entries of a JSON-lines manifest; files are named relative to it.

    Raises ValueError naming the line that is not an entry.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                data = json.loads(line)
                yield Entry(
                    file=data["file"],
                    path=path.parent / data["file"],
                    text=data.get("text"),
                    language=data.get("lang"),
                    seconds=float(data.get("seconds") or 0.0),
                    quality=data.get("ref_quality") or "",
                    is_scored=data.get("text") is not None and data.get("score") is not False,
                    turns=tuple(
                        (float(start), float(end), str(speaker))
                        for start, end, speaker in data.get("rttm") or ()
                    ),
                )
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number} is not an entry: {error}") from None


def is_scored_by_characters(language: str | None) -> bool:
    return language in CHARACTER_LANGUAGES


def comparable_units(text: str, language: str | None) -> list[str]:
    """The words, or characters, that count."""
    text = unicodedata.normalize("NFKC", text)
    if is_scored_by_characters(language):
        if language in CHINESE_LANGUAGES:
            text = _simplified()(text)
        return list(re.sub(r"[\W_]+", "", text.lower()))
    return str(_normaliser(language == "en")(text)).split()


@functools.cache
def _normaliser(is_english: bool) -> Callable[[str], str]:
    from whisper_normalizer.basic import BasicTextNormalizer
    from whisper_normalizer.english import EnglishTextNormalizer

    normaliser: Callable[[str], str]
    normaliser = EnglishTextNormalizer() if is_english else BasicTextNormalizer()
    return normaliser


@functools.cache
def _simplified() -> Callable[[str], str]:
    import opencc

    convert: Callable[[str], str] = opencc.OpenCC("t2s").convert
    return convert


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """Edits that turn the reference, of `units` words or characters, into the hypothesis."""

    units: int
    substitutions: int
    deletions: int
    insertions: int

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions


def count_errors(reference: str, hypothesis: str, language: str | None) -> ErrorCount:
    """Fewest edits between the comparable units of both texts."""
    units = comparable_units(reference, language)
    heard = comparable_units(hypothesis, language)
    if not units or not heard:
        return ErrorCount(len(units), 0, len(units), len(heard))
    import jiwer

    # A number stands for each different unit, so that jiwer's own splitting changes nothing.
    numbers: dict[str, str] = {}

    def numbered(items: Sequence[str]) -> str:
        return " ".join(numbers.setdefault(item, str(len(numbers))) for item in items)

    result = jiwer.process_words(numbered(units), numbered(heard))
    return ErrorCount(len(units), result.substitutions, result.deletions, result.insertions)


@dataclass(frozen=True, slots=True)
class FileScore:
    """What became of one entry. `problem` is the sentence where it could not be transcribed."""

    entry: Entry
    text: str
    audio_s: float
    work_s: float
    problem: str = ""
    extra: dict[str, Any] | None = None

    @property
    def count(self) -> ErrorCount:
        return count_errors(self.entry.text or "", self.text, self.entry.language)

    def as_json(self) -> dict[str, Any]:
        count = self.count
        metric = "cer" if is_scored_by_characters(self.entry.language) else "wer"
        return {
            "file": self.entry.file,
            "lang": self.entry.language,
            "metric": metric,
            "rate": _rate([count]),
            **asdict(count),
            "audio_s": round(self.audio_s, 2),
            "work_s": round(self.work_s, 3),
            "reference": self.entry.text,
            "text": self.text,
            **({"problem": self.problem} if self.problem else {}),
            **(self.extra or {}),
        }


def report(scores: Iterable[FileScore], **facts: Any) -> dict[str, Any]:
    """JSON-able summary: `wer cer rtfx by_lang by_folder files no_speech`, and `facts` as given.

    `wer` and `cer` are None where nothing is scored by words or by characters; text on entries
    where nobody speaks is counted apart, in `no_speech`. `rtfx` is audio time / processing time.
    """
    scores = list(scores)
    spoken = [score for score in scores if score.entry.text]
    silent = [score for score in scores if not score.entry.text]
    audio_s = sum(score.audio_s for score in scores)
    work_s = sum(score.work_s for score in scores)
    return {
        "wer": _rate_of(spoken, is_by_characters=False),
        "cer": _rate_of(spoken, is_by_characters=True),
        "rtfx": round(audio_s / work_s, 2) if work_s else None,
        "audio_s": round(audio_s, 2),
        "work_s": round(work_s, 2),
        **facts,
        "by_lang": _grouped(spoken, lambda entry: entry.language or "unknown"),
        "by_folder": _grouped(spoken, lambda entry: entry.folder),
        "no_speech": {
            "files": len(silent),
            "files_with_text": sum(1 for score in silent if score.text),
            "words": sum(len(score.text.split()) for score in silent),
        },
        "files": [score.as_json() for score in scores],
    }


def _rate(counts: Sequence[ErrorCount]) -> float | None:
    units = sum(count.units for count in counts)
    return round(sum(count.errors for count in counts) / units, 4) if units else None


def _rate_of(scores: Sequence[FileScore], *, is_by_characters: bool) -> float | None:
    return _rate(
        [
            score.count
            for score in scores
            if is_scored_by_characters(score.entry.language) is is_by_characters
        ]
    )


def _grouped(scores: Sequence[FileScore], key: Callable[[Entry], str]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[FileScore]] = {}
    for score in scores:
        groups.setdefault(key(score.entry), []).append(score)
    return {
        name: {
            "files": len(group),
            "audio_s": round(sum(score.audio_s for score in group), 2),
            "wer": _rate_of(group, is_by_characters=False),
            "cer": _rate_of(group, is_by_characters=True),
        }
        for name, group in sorted(groups.items())
    }
