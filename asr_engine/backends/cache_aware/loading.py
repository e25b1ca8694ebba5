"""Which cache-aware model the settings name, and how it is laid out on this machine."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from asr_engine.backends.cache_aware.model import CacheAwareModel
from asr_engine.backends.cache_aware.network import Network
from asr_engine.config import EngineSettings
from asr_engine.errors import ModelError, ModelMissingError
from asr_engine.store import ModelStore

CPU_SLOTS: Final = 32
CPU_BATCH: Final = 32
GPU_SLOTS: Final = 1024
GPU_CACHE_SHARE: Final = 0.4
"""Share of the GPU's free memory that the caches of all slots may take: a step needs room too."""


def create(settings: EngineSettings) -> CacheAwareModel:
    """The model `settings.nemo_model` of the store.

    Raises ModelMissingError, ModelUnverifiedError, ModelError.
    """
    name = settings.nemo_model
    if not name:
        raise ModelMissingError("ASR_NEMO_MODEL names no model of the store")
    store = ModelStore(settings.model_dir)
    folder = store.path(name)
    is_onnx = store.kind(name) == "onnx"
    network = _onnx(folder, settings) if is_onnx else _nemo(folder, settings)
    return CacheAwareModel(network, name=name)


def _onnx(folder: Path, settings: EngineSettings) -> Network:
    from asr_engine.backends.cache_aware.onnx import OnnxNetwork

    slots = settings.slots or CPU_SLOTS
    return OnnxNetwork(
        folder, slots=slots, batch_limit=min(slots, CPU_BATCH), threads=settings.threads or 1
    )


def _nemo(folder: Path, settings: EngineSettings) -> Network:
    if importlib.util.find_spec("nemo") is None:
        raise ModelError("a NeMo model needs requirements/nemo.txt; its ONNX export does not")
    import torch

    from asr_engine.backends.cache_aware import nemo

    device = settings.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = settings.nemo_dtype
    if dtype == "auto":
        dtype = "bfloat16" if device == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    if device == "cpu":
        # Threads that wait for each other at every small operation cost more than they compute.
        torch.set_num_threads(settings.threads or 1)
    model = nemo.restore(folder / "model.nemo", device)
    slots = settings.slots or CPU_SLOTS
    if device == "cuda":
        free_bytes, _ = torch.cuda.mem_get_info()
        room = int(free_bytes * GPU_CACHE_SHARE / nemo.memory_of_slot(model, dtype))
        slots = settings.slots or max(1, min(GPU_SLOTS, room))
    return nemo.NemoNetwork(
        model,
        decoder=settings.nemo_decoder,
        device=device,
        dtype=dtype,
        slots=slots,
        batch_limit=slots if device == "cuda" else min(slots, CPU_BATCH),
    )
