"""A checkpoint gives its tensors, and runs nothing."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asr_engine.backends.speakers.checkpoint import read_tensors
from asr_engine.errors import ModelUnverifiedError


def write(path: Path, pickled: bytes, **storages: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        for name, data in storages.items():
            archive.writestr(f"archive/data/{name[1:]}", data)
    return path


def tensor(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> bytes:
    """A pickle as torch writes it, put together from opcodes: torch need not be there."""

    def integers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(b"K" + bytes([value]) for value in values) + b"t"

    def text(value: str) -> bytes:
        return b"X" + len(value).to_bytes(4, "little") + value.encode()

    storage = (
        b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\x06tQ"
    )
    return (
        b"\x80\x02}"
        + text("weight")
        + b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + b"K"
        + bytes([offset])
        + integers(shape)
        + integers(strides)
        + b"\x89}tRs."
    )


NUMBERS = np.arange(6, dtype="<f4").tobytes()


def test_tensor_is_read_with_its_shape_and_strides(tmp_path: Path) -> None:
    path = write(tmp_path / "model.pt", tensor((3, 2), (1, 3)), _0=NUMBERS)
    assert read_tensors(path)["weight"].tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("shape", "strides", "offset"), [((7,), (1,), 0), ((2, 3), (4, 1), 0), ((6,), (1,), 1)]
)
def test_tensor_that_leaves_its_storage_is_refused(
    tmp_path: Path, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    path = write(tmp_path / "model.pt", tensor(shape, strides, offset), _0=NUMBERS)
    with pytest.raises(ModelUnverifiedError):
        read_tensors(path)


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("was_run"),))


def test_what_a_pickle_would_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelUnverifiedError):
        read_tensors(write(tmp_path / "model.pt", pickle.dumps(_Runs())))
    assert not (tmp_path / "was_run").exists()


def test_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(ModelUnverifiedError):
        read_tensors(tmp_path / "model.pt")
