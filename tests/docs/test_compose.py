"""The compose file: valid, complete, and in step with the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from tests.docs.settings_reference import GROUPS, ROOT, name_of
from webapp.supervise import SERVERS, WEB, WORKERS

SECRETS = ("SECRET_KEY", "POSTGRES_PASSWORD", "BROKER_PASSWORD", "AUDIO_PASSWORD")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def test_every_process_of_the_embedded_server_is_a_service(compose: dict[str, Any]) -> None:
    names = {spec.name for spec in (*SERVERS, WEB, *WORKERS)}
    assert names | {"postgres", "engine-gpu", "setup"} == set(compose["services"])


def test_images_are_built_from_files_that_are_here(compose: dict[str, Any]) -> None:
    builds = [service["build"] for service in compose["services"].values() if "build" in service]
    files = {build["dockerfile"] for build in builds}
    assert files == {str(path.relative_to(ROOT)) for path in (ROOT / "docker").iterdir()}
    for file in files:
        for source in re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / file).read_text(), re.MULTILINE):
            assert all((ROOT / name).exists() for name in source.split()), source


def test_commands_are_those_that_the_supervisor_runs(compose: dict[str, Any]) -> None:
    arguments = {spec.name: spec.arguments for spec in WORKERS}
    for name in ("jobs", "chores"):
        shared = {item for item in arguments[name] if item.startswith("-") or "@" in item}
        assert shared - {"-m"} <= set(compose["services"][name]["command"])
    assert compose["services"]["recorder"]["command"][-1] in get_commands()


def test_variables_are_settings(compose: dict[str, Any]) -> None:
    known = {name_of(prefix, field) for _, cls, prefix in GROUPS for field in cls.model_fields}
    for service in compose["services"].values():
        ours = {key for key in service.get("environment", {}) if key.startswith(("TRANS", "ASR"))}
        assert ours <= known


def test_no_secret_has_a_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for name in SECRETS:
        assert f"${{{name}:?" in text
        assert f"${{{name}:-" not in text


def has_compose() -> bool:
    docker = shutil.which("docker")
    return (
        docker is not None
        and not subprocess.run(
            [docker, "compose", "version"], capture_output=True, check=False
        ).returncode
    )


@pytest.mark.skipif(not has_compose(), reason="there is no `docker compose` to ask")
def test_docker_accepts_the_file() -> None:
    subprocess.run(
        ["docker", "compose", "--profile", "cpu", "--profile", "gpu", "config", "-q"],  # noqa: S607
        cwd=ROOT,
        env={**os.environ, **dict.fromkeys(SECRETS, "x")},
        check=True,
    )
