"""What a list of names does to recordings that hold them, and to those that do not.

    python -m tests.accuracy.glossary MANIFEST [--names FILE] [--folder NAME …] [--changes]

Hears every recording of the manifest twice by both passes, without a glossary and with the names of
FILE, one a line. Prints one JSON object (also when interrupted, of what was heard by then): for
each way the share of the names' occurrences that the refined text has (`recall`), those that it has
where the reference has none (`inserted`), WER and CER, and the CPU seconds of both passes without
encoding. A name counts where its words stand in a row, whatever their case.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from asr_engine import registry
from asr_engine.batch import two_pass
from asr_engine.batch.rescoring import Rescorer
from asr_engine.batch.two_pass import Pass, TwoPassOptions
from asr_engine.config import engine_settings
from asr_engine.evaluation import (
    ErrorCount,
    comparable_units,
    count_errors,
    is_scored_by_characters,
    read_manifest,
)
from asr_engine.ports import BatchModel, SpeechFinder, Window

NAMES = Path(__file__).with_name("names.txt")


class EncodesOnce:
    """A batch model that keeps the encoder output of the windows of one recording."""

    def __init__(self, model: BatchModel) -> None:
        self._model = model
        self._kept: dict[tuple[bytes, ...], object] = {}
        self.encode_s = 0.0

    def encode(self, windows: Sequence[Window], *, room_samples: int = 0) -> object:
        key = tuple(sha256(window.samples.tobytes()).digest() for window in windows)
        if key not in self._kept:
            begun = time.process_time()
            self._kept[key] = self._model.encode(windows, room_samples=room_samples)
            self.encode_s += time.process_time() - begun
        return self._kept[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


@dataclass(slots=True)
class Score:
    """What one way of refining came to over all recordings."""

    found: int = 0
    inserted: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    errors: dict[str, list[ErrorCount]] = field(default_factory=lambda: {"wer": [], "cer": []})
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        said = self.found + self.missed.total()
        return {
            "said": said,
            "found": self.found,
            "recall": round(self.found / said, 4) if said else None,
            "missed": dict(self.missed),
            "inserted": dict(self.inserted),
            **{name: _rate(counts) for name, counts in self.errors.items()},
            "decode_s": round(self.seconds, 2),
        }


def occurrences(names: Sequence[str], text: str, language: str) -> Counter[str]:
    """How often each name stands in `text`, in either Chinese script."""
    units = comparable_units(text, language)
    counts: Counter[str] = Counter()
    for name in names:
        run = comparable_units(name, language)
        counts[name] = sum(
            units[start : start + len(run)] == run for start in range(len(units) - len(run) + 1)
        )
    return counts


def add(score: Score, names: Sequence[str], reference: str, text: str, language: str) -> None:
    said, written = (occurrences(names, one, language) for one in (reference, text))
    score.found += (said & written).total()
    score.missed += said - written
    score.inserted += written - said
    metric = "cer" if is_scored_by_characters(language) else "wer"
    score.errors[metric].append(count_errors(reference, text, language))


def _rate(counts: Sequence[ErrorCount]) -> float | None:
    units = sum(count.units for count in counts)
    return round(sum(count.errors for count in counts) / units, 4) if units else None


def refined_text(
    path: Path, model: Any, finder: SpeechFinder, options: TwoPassOptions
) -> tuple[str, float]:
    """The text of a recording's refine pass, and the CPU seconds of both without encoding."""
    begun, encoded_s = time.process_time(), model.encode_s
    groups = two_pass.transcribe(path, model=model, finder=finder, options=options)
    text = " ".join(
        segment.text
        for group in groups
        if group.pass_ is Pass.REFINED
        for segment in group.segments
    )
    return text, time.process_time() - begun - (model.encode_s - encoded_s)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--names", type=Path, default=NAMES)
    parser.add_argument("--weight", type=float, default=3.0, help="of every name")
    parser.add_argument("--folder", action="append", help="several times; all by default")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--changes", action="store_true", help="show each text that differs")
    arguments = parser.parse_args()
    settings = engine_settings()
    model, finder = registry.batch_model(settings), registry.speech_finder(settings)
    lines = arguments.names.read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if line and not line.startswith("#")]
    rescorers = {
        "without": None,
        "with": Rescorer([(name, arguments.weight) for name in names]),
    }
    scores = {way: Score() for way in rescorers}
    entries = [
        entry
        for entry in read_manifest(arguments.manifest)
        if entry.is_scored and (not arguments.folder or entry.folder in arguments.folder)
    ][: arguments.limit]
    audio_s, files = 0.0, 0
    with contextlib.suppress(KeyboardInterrupt):  # what is done by then is reported
        for entry in entries:
            once = EncodesOnce(model)
            language = None if entry.language == "mul" else entry.language
            heard = {
                way: refined_text(
                    entry.path, once, finder, TwoPassOptions(language=language, rescorer=rescorer)
                )
                for way, rescorer in rescorers.items()
            }
            for way, (text, seconds) in heard.items():
                add(scores[way], names, entry.text or "", text, entry.language or "")
                scores[way].seconds += seconds
            audio_s, files = audio_s + entry.seconds, files + 1
            before, after = heard["without"][0], heard["with"][0]
            if arguments.changes and before != after:
                sys.stderr.write(f"{entry.file}\n- {before}\n+ {after}\n")
    report = {
        "model": model.name,
        "files": files,
        "audio_s": round(audio_s, 1),
        "names": len(names),
        **{way: score.as_json() for way, score in scores.items()},
    }
    sys.stdout.write(json.dumps(report, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
