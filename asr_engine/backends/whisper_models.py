"""Loading Whisper for CTranslate2 from the model store. Shared by the live and batch backends."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from asr_engine.config import EngineSettings
from asr_engine.store import ModelStore


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and how a model computes; `threads` matters on a CPU only."""

    device: str
    compute_type: str
    threads: int


def usable_cores() -> int:
    """Cores that this process may use (a container or `taskset` may allow fewer than exist)."""
    return len(os.sched_getaffinity(0))


def placement(settings: EngineSettings) -> Placement:
    """Resolve `auto`: a GPU where CTranslate2 sees one; int8 on a CPU, float16 on a GPU."""
    import ctranslate2

    device = settings.device
    if device == "auto":
        device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    compute_type = settings.compute_type
    if compute_type == "auto":
        compute_type = "float16" if device == "cuda" else "int8"
    return Placement(device, compute_type, settings.threads or usable_cores())


def load_whisper(settings: EngineSettings, name: str, *, threads: int = 0, workers: int = 1) -> Any:
    """A `faster_whisper.WhisperModel` of the verified model `name`.

    `threads` overrides the settings' (0 does not). `workers` calls are computed at once, each on
    `threads` threads, over one set of weights. Raises ModelMissingError, ModelUnverifiedError.
    """
    folder = ModelStore(settings.model_dir).path(name)
    place = placement(settings)
    from faster_whisper import WhisperModel

    return WhisperModel(
        str(folder),
        device=place.device,
        compute_type=place.compute_type,
        cpu_threads=threads or place.threads,
        num_workers=workers,
        local_files_only=True,
    )
