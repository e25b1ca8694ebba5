"""A whole server, as `make run` starts it, and a real Chromium with a WAV as its microphone.

`server` is shared by the session: a test that breaks it makes one of its own with `start_server`.
The browser's fixtures skip, and say why, where there is no Chromium.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import soundfile
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from asr_engine.backends.scripted import encode_blocks
from tests.e2e.captures import Wire, write_microphone
from tests.fakes.waiting import wait_until
from webapp.setup import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
)
KEPT_AWAKE_FLAGS = (
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
)
"""Playwright's own: with them a hidden tab is as quick as any."""
START_TIMEOUT_S = 180.0


@dataclass
class Server:
    """A supervised server on a data directory of its own."""

    data_dir: Path
    port: int
    email: str
    password: str
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = field(default=None)

    scheme: str = "http"
    cookies: list[Any] = field(default_factory=list)
    """Of the administrator's log-in that the tests share (`let_in`)."""

    @property
    def base_url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}"

    @property
    def log_path(self) -> Path:
        return self.data_dir / "server.log"

    def start(self, *options: str) -> float:
        """Start the supervisor; seconds until the log-in page answered."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "webapp.supervise", *options],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            return wait_until(self.is_up, timeout_s=START_TIMEOUT_S, what="the log-in page answers")
        except BaseException:
            sys.stderr.write(self.log_tail())
            self.stop()
            raise

    def is_up(self) -> bool:
        return self.status("/accounts/login/") == 200

    def wait_ready(self) -> None:
        """Until every part works: the pages answer long before the engine has its models."""
        wait_until(lambda: self.status("/readyz") == 200, timeout_s=120, what="every part is ready")

    def status(self, path: str) -> int:
        """HTTP status of a page without logging in; 0 when nobody answers."""
        try:
            context = None
            if self.scheme == "https":
                authority = self.data_dir / "tls" / "authority.pem"
                context = ssl.create_default_context(cafile=authority)
            address = self.base_url + path
            with urllib.request.urlopen(address, timeout=5, context=context) as response:  # noqa: S310  # ours
                return int(response.status)
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return refusal.code
        except OSError:
            return 0

    def process_id(self, name: str) -> int | None:
        """Process id by name (`webapp.supervise` has the names); None while it is down."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int((self.data_dir / "run" / f"{name}.pid").read_text())
        return None

    def kill(self, name: str) -> int:
        """kill -9 one process; its process id."""
        process_id = self.process_id(name)
        assert process_id is not None, f"{name} is down"
        os.kill(process_id, signal.SIGKILL)
        return process_id

    def processes(self) -> list[str]:
        """Command lines of the living processes on this data directory.

        Known by their environment, or (Valkey overwrites its own) by their working directory.
        """
        mark = f"TRANSCRIBE_DATA_DIR={self.data_dir}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_ours = (folder / "cwd").readlink().is_relative_to(self.data_dir)
                if is_ours or mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop the supervisor by a signal; its exit status."""
        if self.process is None:
            return 0
        self.process.send_signal(number)
        try:
            return self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()  # its children go with it
            return self.process.wait()
        finally:
            self.process = None

    def manage(self, *arguments: str) -> str:
        """Run a `manage.py` command on this server's data; its standard output."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        """What the database answers. Django would take two seconds of the processor to start."""
        address = f"file:{self.data_dir / 'database.sqlite3'}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=20)) as database:
            return database.execute(query, values).fetchall()

    def recorded_pcm(self, recording: str) -> bytes:
        """PCM16 of what a live session, or a file, became."""
        path = self.data_dir / "media" / "recordings" / recording / "source.bin"
        samples, _rate = soundfile.read(path, dtype="int16")
        pcm: bytes = samples.astype("<i2").tobytes()
        return pcm

    def log_tail(self, lines: int = 60) -> str:
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:]) + "\n"


def make_server(**environment: str) -> Server:
    """Set up (but do not start) a server; scripted models unless `environment` says otherwise."""
    data_dir = Path(tempfile.mkdtemp(prefix="transcribe-e2e-"))
    port = free_port()
    own = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("TRANSCRIBE_", "ASR_")) or key == "ASR_MODEL_DIR"
    }
    own |= {
        "TRANSCRIBE_DATA_DIR": str(data_dir),
        "TRANSCRIBE_PORT": str(port),
        "ASR_LIVE_BACKEND": "scripted",
        "ASR_BATCH_BACKEND": "scripted",
        "TRANSCRIBE_MAX_SESSIONS_PER_PERSON": "1000",
        "TRANSCRIBE_WEBHOOK_HOSTS": "127.0.0.0/8",
        **environment,
    }
    own.setdefault("ASR_MODEL_DIR", str(ROOT / "var" / "models"))
    output = subprocess.run(
        [sys.executable, "-m", "webapp.setup", "--without-models"],
        cwd=ROOT,
        env=own,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    email = re.search(r"e-mail\s+(\S+)", output)
    password = re.search(r"password\s+(\S+)", output)
    assert email is not None
    assert password is not None
    return Server(data_dir, port, email[1], password[1], own)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A running server with scripted models, whose webhooks may lead to itself alone."""
    server = make_server(TRANSCRIBE_WEBHOOK_HOSTS="localhost,127.0.0.0/8,::1")
    server.start()
    server.wait_ready()
    yield server
    server.stop()
    shutil.rmtree(server.data_dir, ignore_errors=True)


@pytest.fixture
def start_server() -> Iterator[Callable[..., Server]]:
    """`start_server(**environment)`: a server of the test's own, stopped after it."""
    servers: list[Server] = []

    def start(**environment: str) -> Server:
        server = make_server(**environment)
        servers.append(server)
        server.start()
        server.wait_ready()
        return server

    yield start
    for server in servers:
        server.stop()
        shutil.rmtree(server.data_dir, ignore_errors=True)


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Ended with its module: while it runs, it holds the event loop of the thread, in which no
    asynchronous test can run."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: install Debian's `chromium` package")
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def launch_browser(playwright: Playwright) -> Iterator[Callable[..., Browser]]:
    """`launch_browser(microphone=Path)`: a Chromium whose microphone plays a WAV once.

    With `shares` it shares the tab of that title, sound and all, when a page asks to share; the
    microphone is then to be granted to its contexts. It `throttles` hidden tabs as people's
    browsers do.
    """
    browsers: list[Browser] = []

    def launch(
        microphone: Path | None = None, shares: str = "", *, throttles: bool = False
    ) -> Browser:
        flags = list(CHROMIUM_FLAGS)
        without = list(KEPT_AWAKE_FLAGS) if throttles else []
        if microphone is not None:
            flags.append(f"--use-file-for-fake-audio-capture={microphone}%noloop")
        if shares:
            flags.remove("--use-fake-ui-for-media-stream")  # it shares a screen that beeps
            flags.append(f"--auto-select-tab-capture-source-by-title={shares}")
            without.append("--mute-audio")
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=flags, ignore_default_args=without
        )
        browsers.append(browser)
        return browser

    yield launch
    for browser in browsers:
        browser.close()


@pytest.fixture(scope="module")
def browser(launch_browser: Callable[..., Browser]) -> Browser:
    """A Chromium whose microphone hums (the fake device's own tone)."""
    return launch_browser()


@pytest.fixture
def context(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    context = browser.new_context(
        base_url=server.base_url, permissions=["microphone"], reduced_motion="reduce"
    )
    context.set_default_timeout(15_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page that has not logged in; errors in its console fail nothing by themselves."""
    return context.new_page()


def log_in(page: Page, server: Server, **person: Any) -> None:
    """Log the page in, as the administrator unless `email` and `password` are given."""
    page.goto(f"{server.base_url}/accounts/login/")
    page.locator("input[name=login]").fill(person.get("email", server.email))
    page.locator("input[name=password]").fill(person.get("password", server.password))
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url(lambda url: "/accounts/login" not in url)


def let_in(context: BrowserContext, server: Server) -> None:
    """Give `context` the administrator's log-in: by the form once, and from then on by its cookie.

    Whoever logs out needs a log-in of their own (`log_in`)."""
    if not server.cookies:
        page = context.new_page()
        log_in(page, server)
        page.close()
        names = {"sessionid", "csrftoken"}
        server.cookies = [each for each in context.cookies() if each["name"] in names]
    context.add_cookies(server.cookies)


@pytest.fixture
def logged_in_page(page: Page, server: Server) -> Page:
    """At home, as after a log-in."""
    let_in(page.context, server)
    page.goto("/")
    return page


def new_page(
    browser: Browser,
    server: Server,
    base_url: str,
    contexts: list[BrowserContext],
    **person: Any,
) -> Page:
    """Logged in, on its own where `person` is named; its context is added to `contexts`."""
    context = browser.new_context(base_url=base_url, reduced_motion="reduce")
    context.set_default_timeout(20_000)
    contexts.append(context)
    page = context.new_page()
    if person:
        log_in(page, server, **person)
    else:
        let_in(context, server)  # cookies know no ports
    return page


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    wire = Wire(server.port)
    yield wire
    wire.close()


@pytest.fixture
def speaker(
    server: Server, launch_browser: Callable[..., Browser], tmp_path: Path
) -> Iterator[Callable[..., Page]]:
    """`speaker(blocks, port=…)`: a logged-in page whose microphone will say `blocks` once."""
    contexts: list[BrowserContext] = []

    def open_page(blocks: list[int | None], port: int = server.port, **person: Any) -> Page:
        microphone = write_microphone(tmp_path / "microphone.wav", encode_blocks(blocks))
        address = f"http://localhost:{port}"
        return new_page(launch_browser(microphone), server, address, contexts, **person)

    yield open_page
    for context in contexts:
        context.close()
