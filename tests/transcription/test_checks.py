"""System checks name what is wrong and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from asr_engine.config import EngineSettings
from transcription import checks
from webapp.config import site_settings


def test_misspelt_variable_is_named_with_the_one_that_was_meant() -> None:
    names = ["TRANSCRIBE_ALOWED_HOSTS", "ASR_SLOTS", "TRANSCRIBE_PORT", "ASR_XYZZY", "HOME"]
    assert checks.unknown_variables(names) == [
        ("ASR_XYZZY", []),
        ("TRANSCRIBE_ALOWED_HOSTS", ["TRANSCRIBE_ALLOWED_HOSTS"]),
    ]


def test_variables_of_the_test_environment_are_all_known() -> None:
    assert checks.check_variables(app_configs=None) == []


def test_missing_model_is_named_with_the_command_that_fetches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EngineSettings(model_dir=tmp_path, live_backend="whisper", batch_backend="whisper")
    monkeypatch.setattr(checks, "engine_settings", lambda: settings)
    found = checks.check_models(app_configs=None)
    assert {message.hint for message in found} == {
        "Run `manage.py models fetch whisper-base`.",
        "Run `manage.py models fetch whisper-tiny.en`.",
        "Run `manage.py models fetch silero-vad`.",
        "Run `manage.py models fetch speakers`.",
    }


def test_scripted_backends_need_no_model() -> None:
    settings = EngineSettings(live_backend="scripted", batch_backend="scripted")
    assert settings.models_needed() == set()


def test_a_language_model_is_asked_for_with_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EngineSettings(
        model_dir=tmp_path, live_backend="scripted", batch_backend="scripted", lm="own"
    )
    monkeypatch.setattr(checks, "engine_settings", lambda: settings)
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    (missing,) = checks.check_models(app_configs=None)
    assert missing.hint == "Run `manage.py models add own FILE`."
    (library,) = checks.check_language_model_library(app_configs=None)
    assert "requirements/lm.txt" in str(library.hint)
    monkeypatch.setattr(checks, "find_spec", lambda name: object())
    assert checks.check_language_model_library(app_configs=None) == []


def test_data_directory_that_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = site_settings().model_copy(update={"data_dir": tmp_path / "nowhere"})
    monkeypatch.setattr(checks, "site_settings", lambda: changed)
    (message,) = checks.check_data_dir(app_configs=None)
    assert message.id == "transcription.E001"
    assert "make setup" in str(message.hint)


def test_folders_that_recordings_cannot_come_from_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(**changes: str) -> list[str]:
        site = site_settings().model_copy(update=changes)
        monkeypatch.setattr(checks, "site_settings", lambda: site)
        return [str(message.msg) for message in checks.check_intake(app_configs=None)]

    there, missing = str(tmp_path), str(tmp_path / "nowhere")
    assert found() == []
    assert found(intake_folders=there, watch_folder=there, watch_owner="a@example.org") == []
    assert found(intake_folders=f"{there},{missing},relative") == [
        f"The intake folder {missing} cannot be read.",
        "The intake folder relative cannot be read.",
    ]
    assert found(watch_folder=missing) == [
        f"The watch folder {missing} cannot be read and written.",
        "The watch folder has no owner: nothing is taken from it.",
    ]
