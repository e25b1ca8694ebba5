"""Setting up a data directory: secrets once, ports that are free, an administrator once."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest
from dotenv import dotenv_values

from webapp.setup import (
    FIRST_ADMINISTRATOR,
    AlreadyRunningError,
    hold_data_dir,
    make_first_administrator,
    move_when_taken,
    write_settings,
)

OWN = ("TRANSCRIBE_SECRET_KEY", "TRANSCRIBE_BROKER_URL", "TRANSCRIBE_AUDIO_URL")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OWN:
        monkeypatch.delenv(name)


def test_only_the_owner_can_read_the_directory_and_its_secrets(tmp_path: Path) -> None:
    path = write_settings(tmp_path / "data")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_second_set_up_keeps_secrets_and_what_a_person_wrote(tmp_path: Path) -> None:
    path = write_settings(tmp_path)
    path.write_text(path.read_text() + "# mine\nTRANSCRIBE_LOG_LEVEL=DEBUG\n")
    before = path.read_text()
    assert write_settings(tmp_path).read_text() == before


def test_missing_values_are_added_to_a_file_that_a_person_began(tmp_path: Path) -> None:
    (tmp_path / "settings.env").write_text("TRANSCRIBE_BROKER_URL=redis://broker.example:6379/0\n")
    values = dotenv_values(write_settings(tmp_path))
    assert values["TRANSCRIBE_BROKER_URL"] == "redis://broker.example:6379/0"
    assert set(OWN) <= set(values)


def test_what_the_environment_gives_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSCRIBE_SECRET_KEY", "from the environment")
    assert "TRANSCRIBE_SECRET_KEY" not in dotenv_values(write_settings(tmp_path))


def test_taken_port_is_chosen_again_and_the_password_stays() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        moved = move_when_taken(f"redis://:secret@127.0.0.1:{taken}/0")
        assert moved.startswith("redis://:secret@127.0.0.1:")
        assert f":{taken}/" not in moved


def test_own_servers_are_not_moved_from_their_ports(tmp_path: Path) -> None:
    with socket.socket() as redis:
        redis.bind(("127.0.0.1", 0))
        redis.listen()
        url = f"redis://127.0.0.1:{redis.getsockname()[1]}/0"
        (tmp_path / "settings.env").write_text(
            f"TRANSCRIBE_EMBEDDED_SERVERS=false\nTRANSCRIBE_BROKER_URL={url}\n"
        )
        assert dotenv_values(write_settings(tmp_path))["TRANSCRIBE_BROKER_URL"] == url


def test_directory_has_one_holder(tmp_path: Path) -> None:
    with (
        hold_data_dir(tmp_path),
        pytest.raises(AlreadyRunningError, match="already running"),
        hold_data_dir(tmp_path),
    ):
        pass
    with hold_data_dir(tmp_path):
        pass


@pytest.mark.django_db
def test_first_administrator_is_made_once_and_can_log_in() -> None:
    from django.test import Client

    password = make_first_administrator()
    assert password is not None
    assert make_first_administrator() is None
    client = Client()
    assert client.login(email=FIRST_ADMINISTRATOR, password=password)
