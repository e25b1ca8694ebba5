"""Settings of the engine: the only module of `asr_engine` that reads the environment.

Every field's docstring is its line in `docs/settings.md`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

BASE_DIR = Path(__file__).resolve().parent.parent


class EngineSettings(BaseSettings):
    """Variables `ASR_*`."""

    model_config = SettingsConfigDict(
        env_prefix="ASR_", frozen=True, use_attribute_docstrings=True, extra="ignore"
    )

    name: str = "engine-1"
    """Name of this engine; engines that share a broker need different ones."""
    broker_url: str = ""
    """Redis URL of the broker. Needed by the worker, not by offline commands."""
    audio_url: str = ""
    """Redis URL of the audio server. Needed by the worker."""
    model_dir: Path = BASE_DIR / "var" / "models"
    """The model store: one folder (or .nemo file) per model."""
    live_backend: str = "auto"
    """`auto`, `nemo`, `whisper` or `scripted`. `auto` is `nemo` where `ASR_NEMO_MODEL` names an
    installed model, else `whisper`."""
    nemo_model: str = ""
    """A cache-aware streaming model of the store, brought with `manage.py models add` or made with
    `manage.py models export`."""
    nemo_decoder: Literal["rnnt", "ctc"] = "rnnt"
    """Decoder of a hybrid model: `rnnt` or `ctc`."""
    nemo_dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """How a cache-aware model computes on a GPU: `float32`, `bfloat16` or `float16`; `auto` is
    bfloat16 where the GPU has it. A CPU computes in float32."""
    live_model_en: str = "whisper-tiny.en"
    """Model of the Whisper live backend for English."""
    live_model: str = "whisper-base"
    """Model of the Whisper live backend for every other language."""
    batch_model: str = "whisper-base"
    """Model of the batch passes."""
    refine_share: float = Field(default=0, ge=0, le=1)
    """Share of long speech that the refine pass may hear again, the most doubtful first; what is
    short is always heard again. 1 is all; 0 means what the backend advises, all on a GPU and three
    tenths on a CPU."""
    lm: str = ""
    """A language model of the store, brought with `manage.py models add`, that has a say in the
    refine pass; needs `requirements/lm.txt`. Empty: none."""
    batch_backend: str = "whisper"
    """`whisper` or `scripted`."""
    speaker_backend: str = "auto"
    """`auto`, `embedded`, `sortformer` or `none`: what tells speakers apart. `auto` is `sortformer`
    where `ASR_SORTFORMER_MODEL` names an installed model, else `embedded`."""
    sortformer_model: str = ""
    """A streaming Sortformer model of the store, brought with `manage.py models add`: up to four
    speakers; needs `requirements/nemo.txt` and wants a GPU."""
    device: str = "auto"
    """`auto`, `cpu` or `cuda`."""
    compute_type: str = "auto"
    """CTranslate2 compute type; `auto` is int8 on a CPU and float16 on a GPU."""
    slots: int = Field(default=0, ge=0)
    """Concurrent live streams admitted; 0 means what the backend advises for this machine."""
    threads: int = Field(default=0, ge=0)
    """CPU threads of one model; 0 means what the backend advises."""
    chinese_script: Literal["heard", "hans", "hant"] = "hans"
    """Characters of Chinese in live captions: `hans`, `hant` or `heard`. Where the site starts the
    engine, `TRANSCRIBE_CHINESE_SCRIPT` sets it."""
    metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the engine's own Prometheus page on loopback; 0 switches it off."""

    def models_needed(self) -> set[str]:
        """Names in the model store that this configuration will load."""
        needed: set[str] = set()
        backend = self.live_backend
        if backend == "auto":
            backend = "nemo" if self.nemo_model else "whisper"
        if backend == "whisper":
            needed |= {self.live_model, self.live_model_en, "silero-vad"}
        elif backend == "nemo":
            needed |= {self.nemo_model, "silero-vad"}
        if self.batch_backend == "whisper":
            needed |= {self.batch_model, "silero-vad"}
        if self.lm:
            needed.add(self.lm)
        return needed | self._speaker_models_needed()

    def _speaker_models_needed(self) -> set[str]:
        backend = self.speaker_backend
        if backend == "auto":
            backend = "sortformer" if self.sortformer_model else "embedded"
        if backend == "sortformer":
            return {self.sortformer_model}
        is_used = backend == "embedded" and self.batch_backend != "scripted"
        return {"speakers"} if is_used else set()


@cache
def engine_settings() -> EngineSettings:
    return EngineSettings()
