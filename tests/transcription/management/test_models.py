"""`manage.py models`: what is installed, and how to mend it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from asr_engine.config import EngineSettings
from asr_engine.store import MODELS, ModelEntry, ModelStore
from transcription.management.commands import models as command_module


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings = EngineSettings(model_dir=tmp_path / "models")
    monkeypatch.setattr(command_module, "engine_settings", lambda: settings)
    return tmp_path / "models"


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("models", *arguments, stdout=out)
    return out.getvalue()


def test_every_known_model_is_listed_with_its_state() -> None:
    text = run()
    assert len(text.splitlines()) == len(MODELS)
    assert all(name in text for name in MODELS)
    assert text.count("missing") == len(MODELS)


def test_verifying_what_is_missing_fails_and_names_all_of_it() -> None:
    with pytest.raises(CommandError) as failure:
        run("verify")
    assert all(name in str(failure.value) for name in MODELS)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(CommandError, match="whisper-base"):
        run("fetch", "whisper-gigantic")


def test_a_folder_without_the_files_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no readable silero_vad_16k_op15\.onnx"):
        run("fetch", "silero-vad", "--from", str(tmp_path))


def test_wrong_bytes_from_a_folder_are_refused(tmp_path: Path, store: Path) -> None:
    source = tmp_path / "silero-vad"
    source.mkdir()
    for file in MODELS["silero-vad"].files:
        (source / file.name).write_bytes(b"something else")
    with pytest.raises(CommandError, match="does not match its checksum"):
        run("fetch", "silero-vad", "--from", str(tmp_path))
    assert not (store / "silero-vad").exists()


@pytest.fixture
def nemo(tmp_path: Path) -> Path:
    path = tmp_path / "speech.nemo"
    with tarfile.open(path, "w") as archive:
        for name in ("./model_config.yaml", "./model_weights.ckpt"):
            archive.addfile(tarfile.TarInfo(name))
    return path


def test_a_model_of_ones_own_is_added_listed_verified_and_removed(nemo: Path) -> None:
    digest = hashlib.sha256(nemo.read_bytes()).hexdigest()
    assert digest in (said := run("add", "mine", str(nemo), "--licence", "CC-BY-4.0"))
    assert "Compare" in said
    assert run("list", "mine").split()[:2] == ["mine", "installed"]
    assert "CC-BY-4.0" in run()
    assert run("verify", "mine") == "mine: verified\n"
    assert run("remove", "mine") == "mine: removed\n"
    with pytest.raises(CommandError, match="Unknown: mine"):
        run("list", "mine")


def test_the_publishers_hash_needs_no_comparing_and_another_is_refused(
    nemo: Path, store: Path
) -> None:
    with pytest.raises(CommandError, match="has SHA-256"):
        run("add", "mine", str(nemo), "--sha256", "0" * 64)
    assert not (store / "mine").exists()
    digest = hashlib.sha256(nemo.read_bytes()).hexdigest()
    assert "Compare" not in run("add", "mine", str(nemo), "--sha256", digest)


def test_fetching_everything_leaves_a_model_of_ones_own_alone(
    tmp_path: Path, nemo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(
        command_module.ModelStore, "fetch", lambda store, name, source: fetched.append(name)
    )
    run("add", "mine", str(nemo))
    run("fetch")
    assert fetched == list(MODELS)


def test_a_built_in_model_cannot_be_removed() -> None:
    with pytest.raises(CommandError, match="built in"):
        run("remove", "whisper-base")


def test_an_unknown_model_cannot_be_exported(store: Path) -> None:
    with pytest.raises(CommandError, match="not a known model"):
        run("export", "nothing", "something", "--onnx")
    assert not (store / "something").exists()


def test_without_nemo_exporting_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_module, "EXPORTER", "torch_and_nemo.export_onnx")
    with pytest.raises(CommandError, match=r"requirements/nemo\.txt"):
        run("export", "nothing", "something", "--onnx")


def test_exporting_passes_on_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def export(store: ModelStore, name: str, new_name: str, **wishes: object) -> ModelEntry:
        asked.update(wishes, name=name)
        return ModelEntry(new_name, "", "", ())

    monkeypatch.setattr(command_module, "import_string", lambda path: export)
    assert "fast: exported" in run("export", "mine", "fast", "--onnx", "--int8", "--decoder", "ctc")
    assert asked == {"name": "mine", "is_int8": True, "decoder": "ctc"}
