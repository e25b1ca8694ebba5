"""KenLM as a LanguageModel: n-grams of what an organisation says (Heafield 2011).

The library is not among what is always installed (`requirements/lm.txt`): it is built from source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from asr_engine.config import EngineSettings
from asr_engine.errors import ModelError
from asr_engine.store import LANGUAGE_MODEL_NAME, ModelKind, ModelStore


def create(settings: EngineSettings) -> KenLanguageModel:
    """Raises ModelError, ModelMissingError, ModelUnverifiedError."""
    store = ModelStore(settings.model_dir)
    folder = store.path(settings.lm)
    if store.kind(settings.lm) is not ModelKind.LANGUAGE:
        raise ModelError(f"{settings.lm} is no language model")
    try:
        import kenlm
    except ImportError:
        raise ModelError("KenLM is not installed: install requirements/lm.txt") from None
    try:
        return KenLanguageModel(kenlm.Model(str(folder / LANGUAGE_MODEL_NAME)))
    except OSError:
        raise ModelError(f"{settings.lm} cannot be read by KenLM") from None


class KenLanguageModel:
    """Used by one thread."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def log_probability(self, units: Sequence[str]) -> float:
        """Natural logarithm; not as of a whole sentence, since a window need not be one."""
        score: float = self._model.score(" ".join(units), bos=False, eos=False)
        return score * math.log(10)
