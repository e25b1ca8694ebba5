"""Tensors of a checkpoint that torch wrote, read without torch and without running what it names.

A checkpoint is a ZIP archive: a pickle that describes tensors, and one member of raw bytes for
each of their storages. The pickle may name four callables, which stand for ones of this module;
whatever else it names is refused.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.errors import ModelUnverifiedError

DTYPES: Final = {
    "FloatStorage": np.dtype("<f4"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
}


def read_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Every floating tensor of the checkpoint's state, float32, by its name.

    The state is the pickled object itself or its `state_dict`. Raises ModelUnverifiedError for an
    archive that holds anything else than tensors and plain values.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            with archive.open(pickled) as stream:
                held = _TensorUnpickler(stream, archive, pickled.rpartition("/")[0]).load()
    except (zipfile.BadZipFile, KeyError, StopIteration, ValueError, pickle.UnpicklingError):
        raise ModelUnverifiedError(f"{path.name} is no checkpoint of plain tensors") from None
    state = held.get("state_dict", held)
    return {
        name: np.ascontiguousarray(tensor, np.float32)
        for name, tensor in state.items()
        if tensor.dtype.kind == "f"
    }


class _TensorUnpickler(pickle.Unpickler):
    def __init__(self, stream: IO[bytes], archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(stream)
        self._archive = archive
        self._folder = folder

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuilt
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a checkpoint")

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        """The storage that ("storage", dtype, member, device, count) stands for."""
        _, dtype, member, _, count = pid
        data = self._archive.read(f"{self._folder}/data/{member}")
        return np.frombuffer(data, dtype, count)


def _rebuilt(
    storage: NDArray[Any], offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> NDArray[Any]:
    """A view of a storage. `strides` count elements, which numpy counts in bytes."""
    end = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) + 1
    if min((offset, *strides), default=0) < 0 or (0 not in shape and end > len(storage)):
        raise ValueError("a tensor leaves its storage")
    return np.lib.stride_tricks.as_strided(
        storage[offset:], shape, [step * storage.itemsize for step in strides], writeable=False
    )
