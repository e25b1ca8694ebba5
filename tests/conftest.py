"""Surroundings of every test: a data directory and two Valkey servers of their own.

The environment is set before Django reads it, so this happens at import.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from webapp.setup import free_port

if TYPE_CHECKING:
    from django.test import Client

    from webapp.accounts.models import User


OTHERS_NICE = 10
TESTS = Path(__file__).resolve().parent
DATA_DIR = Path(tempfile.mkdtemp(prefix="transcribe-tests-"))
(DATA_DIR / "static").mkdir()  # WhiteNoise warns where it finds none
BROKER_URL = f"redis://127.0.0.1:{free_port()}/0"
AUDIO_URL = f"redis://127.0.0.1:{free_port()}/0"
for name in [key for key in os.environ if key.startswith(("TRANSCRIBE_", "ASR_"))]:
    if name not in {"TRANSCRIBE_DATABASE_URL", "ASR_MODEL_DIR"}:
        del os.environ[name]
os.environ.setdefault("ASR_MODEL_DIR", str(TESTS.parent / "var" / "models"))
os.environ.update(
    # Here and not in pyproject.toml: pytest-django would read the settings before this file.
    DJANGO_SETTINGS_MODULE="webapp.settings",
    TRANSCRIBE_DATA_DIR=str(DATA_DIR),
    TRANSCRIBE_SECRET_KEY=secrets.token_urlsafe(40),
    TRANSCRIBE_BROKER_URL=BROKER_URL,
    TRANSCRIBE_AUDIO_URL=AUDIO_URL,
    HF_HUB_OFFLINE="1",
)


def pytest_configure(config: pytest.Config) -> None:
    from django.conf import settings

    import webapp.celery  # noqa: F401  # tests send tasks by the current Celery application

    # Tests render pages without `collectstatic`, and hash passwords fast.
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def pytest_unconfigure() -> None:
    shutil.rmtree(DATA_DIR, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Processes that share the tests have servers of their own, and so settings of their own."""
    del os.environ["DJANGO_SETTINGS_MODULE"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where processes share the tests (`make test`), a module stays in one of them for what its
    tests share, and so do all that speak in real time to one whole server: those mostly wait, which
    leaves the processor to the others."""
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "e2e" if nodeid.startswith("tests/e2e/") else nodeid.partition("::")[0]

        def _assign_work_unit(self, node: Any) -> None:
            if "e2e" in self.workqueue:
                self.workqueue.move_to_end("e2e", last=False)
            super()._assign_work_unit(node)

    return ByModule(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A voice that speaks in real time goes first: where another test takes the processor from it,
    the browser's microphone drops what was said. (Its process has the voices before all else.)"""
    if "PYTEST_XDIST_WORKER" in os.environ and not item.nodeid.startswith("tests/e2e/"):
        os.nice(max(0, OTHERS_NICE - os.nice(0)))


def _wait_for_port(url: str, process: subprocess.Popen[bytes]) -> None:
    port = int(url.rsplit(":", 1)[1].split("/", maxsplit=1)[0])
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"valkey ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError("valkey did not start")


@pytest.fixture(autouse=True)
def time_zone_of_the_site() -> Iterator[None]:
    """A request leaves its person's time zone active in its thread, which tests share."""
    yield
    timezone.deactivate()


@pytest.fixture(scope="session", autouse=True)
def valkey_servers() -> Iterator[None]:
    """The broker and the audio server, as in production."""
    processes = []
    for kind, url in (("broker", BROKER_URL), ("audio", AUDIO_URL)):
        process = subprocess.Popen(
            [sys.executable, "-m", "webapp.valkey", kind],
            stdout=subprocess.DEVNULL,
            cwd=TESTS.parent,
        )
        processes.append(process)
        _wait_for_port(url, process)
    yield
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(timeout=10)


# People: Alice owns, Bob works beside her, Charlie is a stranger, and an administrator ------------


@pytest.fixture
def alice(db: None) -> User:
    from tests.fakes.people import make_person

    return make_person("Alice")


@pytest.fixture
def bob(db: None) -> User:
    from tests.fakes.people import make_person

    return make_person("Bob")


@pytest.fixture
def charlie(db: None) -> User:
    from tests.fakes.people import make_person

    return make_person("Charlie")


@pytest.fixture
def administrator(db: None) -> User:
    from tests.fakes.people import make_administrator

    return make_administrator()


@pytest.fixture
def client_of() -> Callable[[User | None], Client]:
    """`client_of(alice)` is a client logged in as Alice; `client_of(None)` is anonymous.

    It checks CSRF as a browser's requests are checked only where a test asks for it.
    """
    from django.test import Client

    def make(user: User | None) -> Client:
        client = Client()
        if user is not None:
            client.force_login(user)
        return client

    return make
