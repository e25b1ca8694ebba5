"""The language prompt of multilingual cache-aware models (Nemotron 3.5).

Such a model is told the language by a one-hot vector joined to every encoder frame, which a small
network mixes in. NeMo 3.0.0's own streaming wrapper takes the vector and drops it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from torch import Tensor

from asr_engine.errors import ModelError, UnsupportedLanguageError

DETECT: Final = "auto"
ENGLISH: Final = "en"
ENGLISH_LOCALE: Final = "en-US"


@dataclass(frozen=True, slots=True)
class PromptLanguages:
    """Languages by prompt index; without prompts the model has one language, or does not say."""

    languages: tuple[str, ...] = ()
    can_detect: bool = False
    is_prompted: bool = False
    _indices: Mapping[str | None, int] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Any) -> PromptLanguages:
        """What a restored NeMo model says of its languages. Raises ModelError."""
        if not getattr(model, "concat", False):
            return cls()
        dictionary = dict(model.cfg.model_defaults.get("prompt_dictionary") or {})
        if not dictionary:
            raise ModelError("a model with language prompts names no languages")
        by_language: dict[str | None, int] = {}
        for locale, index in dictionary.items():
            language, _, region = str(locale).partition("-")
            if language == DETECT:
                continue
            is_main = not region or region == language.upper() or locale == ENGLISH_LOCALE
            if language not in by_language or is_main:
                by_language[language] = int(index)
        languages = tuple(sorted(language for language in by_language if language))
        can_detect = DETECT in dictionary
        by_language[None] = int(dictionary[DETECT]) if can_detect else by_language[languages[0]]
        if not can_detect and ENGLISH in by_language:
            by_language[None] = by_language[ENGLISH]
        return cls(languages, can_detect, is_prompted=True, _indices=by_language)

    def prompt(self, language: str | None) -> int:
        """The prompt's index. Raises UnsupportedLanguageError."""
        if not self.is_prompted:
            return 0
        try:
            return self._indices[language]
        except KeyError:
            raise UnsupportedLanguageError from None

    def condition(self, model: Any, encoded: Tensor, prompts: Tensor) -> Tensor:
        """`encoded` [batch, dimension, frames] with each row's prompt mixed in."""
        if not self.is_prompted:
            return encoded
        import torch

        frames = encoded.transpose(1, 2)
        one_hot = torch.nn.functional.one_hot(prompts, model.num_prompts).to(frames.dtype)
        told = torch.cat([frames, one_hot[:, None].expand(-1, frames.shape[1], -1)], dim=-1)
        mixed: Tensor = model.prompt_kernel(told)
        return mixed.to(encoded.dtype).transpose(1, 2)
