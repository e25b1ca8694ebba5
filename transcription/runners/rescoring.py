"""What has a say in the refine pass of a command: terms in a file, and a language model."""

from __future__ import annotations

from pathlib import Path

from asr_engine import registry
from asr_engine.batch.rescoring import Rescorer
from asr_engine.config import EngineSettings
from transcription.services.glossary import read_terms


def rescorer_of(settings: EngineSettings, glossary: Path | None = None) -> Rescorer | None:
    """None where there is neither. Raises OSError, UnicodeDecodeError, InvalidInputError."""
    lines = glossary.read_text(encoding="utf-8-sig").splitlines() if glossary else []
    phrases = [(term.phrase, term.weight) for term in read_terms(lines)]
    lm = registry.language_model(settings)
    return Rescorer(phrases, lm) if phrases or lm else None
