"""Runs every process of the embedded server, and restarts each one that ends.

    python -m webapp.supervise [--lan] [--certificate PEM --key PEM]

Owns the processes of one data directory, from start to stop. The broker and the audio server start
first; a process that ends comes back at once, and after growing pauses while it keeps failing.
Ctrl-C or SIGTERM stops all of them, the two servers last; if this process is killed, the kernel
kills its children (Linux). Each child leads a process group of its own and its id stands in
`run/<name>.pid`. Why not the `supervisor` package: docs/decisions/0003-supervisor.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import os
import signal
import ssl
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import redis.asyncio
from redis.exceptions import RedisError

from webapp.config import BASE_DIR, Settings, data_dir, share_with_engine, site_settings
from webapp.lan import prepare
from webapp.setup import AlreadyRunningError, hold_data_dir, is_port_free

STOP_TIMEOUT_S: Final = 10.0
SERVER_READY_TIMEOUT_S: Final = 60.0
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 30.0
STEADY_AFTER_S: Final = 10.0
"""A process that ran this long starts again with the shortest pause."""

PR_SET_PDEATHSIG: Final = 1
COLOURS: Final = (36, 35, 34, 33, 32, 96, 95, 94)


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One supervised process: its name in logs, and the arguments of its Python."""

    name: str
    arguments: tuple[str, ...]


SERVERS: Final = (
    ProcessSpec("broker", ("-m", "webapp.valkey", "broker")),
    ProcessSpec("audio", ("-m", "webapp.valkey", "audio")),
)
_CELERY: Final = ("-m", "celery", "--quiet", "-A", "webapp.celery")
_WORKER: Final = (*_CELERY, "worker", "--without-gossip", "--without-mingle", "--loglevel=INFO")
WEB: Final = ProcessSpec("web", ("-m", "webapp.serve"))
WORKERS: Final = (
    ProcessSpec("engine", ("-m", "asr_engine.worker")),
    ProcessSpec("recorder", ("manage.py", "record_live")),
    ProcessSpec("jobs", (*_WORKER, "-Q", "batch", "--pool=solo", "-n", "jobs@%h")),
    ProcessSpec("chores", (*_WORKER, "-Q", "chores", "--pool=threads", "-c4", "-n", "chores@%h")),
    ProcessSpec("beat", (*_CELERY, "beat", "--loglevel=WARNING", "--schedule", "{run}/beat")),
)


def web_specs(settings: Settings) -> tuple[ProcessSpec, ...]:
    """The web processes. Several share the port by a listening socket each, which each binds when
    it can answer: who connects while one is started again reaches the others."""
    if settings.web_processes == 1:
        return (WEB,)
    names = [f"{WEB.name}-{number}" for number in range(1, settings.web_processes + 1)]
    return tuple(ProcessSpec(name, (*WEB.arguments, "--shared", "--name", name)) for name in names)


class Output:
    """Writes the processes' lines to one stream, each behind the name of its process."""

    def __init__(self, stream: IO[str], names: list[str]) -> None:
        self._stream = stream
        self._width = max(len(name) for name in names)
        is_terminal = stream.isatty()
        self._colours = {
            name: f"\033[{COLOURS[index % len(COLOURS)]}m" if is_terminal else ""
            for index, name in enumerate(names)
        }
        self._reset = "\033[0m" if is_terminal else ""

    def line(self, name: str, text: str) -> None:
        colour = self._colours.get(name, "")
        print(f"{colour}{name:<{self._width}} |{self._reset} {text}", file=self._stream, flush=True)

    async def follow(self, name: str, reader: asyncio.StreamReader) -> None:
        """Copy until the process closes its output; lines of any length."""
        rest = b""
        while data := await reader.read(65536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.line(name, line.decode(errors="replace"))
        if rest:
            self.line(name, rest.decode(errors="replace"))


def _die_with(parent: int, libc: ctypes.CDLL | None) -> None:
    """Runs in the child, before exec: the kernel kills it when its parent is gone."""
    if libc is None:
        return
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it went between fork and prctl
        os._exit(1)


class Child:
    """One process, started again whenever it ends, until `stop`."""

    def __init__(self, spec: ProcessSpec, output: Output, run_dir: Path) -> None:
        self.name = spec.name
        self._command = [sys.executable, *(item.format(run=run_dir) for item in spec.arguments)]
        self._output = output
        self._pid_file = run_dir / f"{spec.name}.pid"
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    async def keep_running(self) -> None:
        """Returns after `stop`, once the process has ended."""
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._run_once()
            if self._stopping.is_set():
                return
            if time.monotonic() - started > STEADY_AFTER_S:
                pause_s = FIRST_PAUSE_S
            self._output.line(self.name, f"ended with {code}; starts again in {pause_s:.1f} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _run_once(self) -> int:
        parent = os.getpid()
        process = await asyncio.create_subprocess_exec(
            *self._command,
            cwd=BASE_DIR,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            process_group=0,
            preexec_fn=lambda: _die_with(parent, self._libc),
        )
        self._process = process
        self._pid_file.write_text(str(process.pid))
        if self._stopping.is_set():  # `stop` came while the process was being made
            self._signal(signal.SIGTERM)
        assert process.stdout is not None  # noqa: S101  # asked for above
        following = asyncio.create_task(self._output.follow(self.name, process.stdout))
        code = await process.wait()
        self._signal(signal.SIGKILL)  # what it left in its group
        # A grandchild outside the group may hold the pipe: do not wait for it.
        await asyncio.wait([following], timeout=1)
        following.cancel()
        self._process = None
        self._pid_file.unlink(missing_ok=True)
        return code

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def stop(self) -> None:
        """Ask the process to end and not to come back."""
        self._stopping.set()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def kill(self) -> None:
        """End its whole group at once."""
        self._stopping.set()
        self._signal(signal.SIGKILL)


class Supervisor:
    """Starts, restarts and stops the processes of one data directory."""

    def __init__(self, settings: Settings, stream: IO[str]) -> None:
        self._settings = settings
        webs = web_specs(settings)
        names = [spec.name for spec in (*SERVERS, *webs, *WORKERS)]
        self._output = Output(stream, [*names, "server"])
        run_dir = settings.data_dir / "run"
        run_dir.mkdir(mode=0o700, exist_ok=True)
        urls = (settings.broker_url, settings.audio_url)
        self._servers = [
            Child(spec, self._output, run_dir)
            for spec, url in zip(SERVERS, urls, strict=True)
            if settings.is_embedded(url)
        ]
        self._webs = [Child(spec, self._output, run_dir) for spec in webs]
        self._workers = [Child(spec, self._output, run_dir) for spec in WORKERS]
        self._tasks: dict[Child, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Run until Ctrl-C, SIGTERM, or the terminal is closed."""
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stopping.set)
        starting = asyncio.create_task(self._start())
        try:
            waiting = asyncio.create_task(stopping.wait())
            await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not stopping.is_set():
                starting.result()  # raises when the start failed
                await waiting
            waiting.cancel()
        finally:
            starting.cancel()
            self._output.line("server", "stopping")
            await self._stop([*self._webs, *self._workers])
            await self._stop(self._servers)
            self._output.line("server", "stopped")

    async def _start(self) -> None:
        self._keep_running([*self._servers, *self._webs])  # people wait for the pages
        for url in (self._settings.broker_url, self._settings.audio_url):
            await wait_for_server(url)
        self._keep_running(self._workers)
        await wait_for_login_page(self._settings)
        self._output.line("server", f"ready at {self._settings.site_url}/ (Ctrl-C stops it)")

    def _keep_running(self, children: list[Child]) -> None:
        for child in children:
            self._tasks[child] = asyncio.create_task(child.keep_running())

    async def _stop(self, children: list[Child]) -> None:
        running = {self._tasks[child] for child in children if child in self._tasks}
        if not running:
            return
        for child in children:
            child.stop()
        _, late = await asyncio.wait(running, timeout=STOP_TIMEOUT_S)
        if late:
            for child in children:
                child.kill()
            _, late = await asyncio.wait(late, timeout=STOP_TIMEOUT_S)
        for task in late:
            task.cancel()


async def wait_for_server(url: str) -> None:
    """Until the Valkey at `url` answers with its data loaded. Raises TimeoutError."""
    async with asyncio.timeout(SERVER_READY_TIMEOUT_S), redis.asyncio.from_url(url) as client:
        while True:
            with contextlib.suppress(RedisError):
                await client.ping()
                return
            await asyncio.sleep(0.05)


async def wait_for_login_page(settings: Settings) -> None:
    """Until the web process answers with the log-in page."""
    context = None
    if settings.tls_certificate:
        context = ssl.create_default_context()
        context.check_hostname = False  # asks whether it answers, on this machine
        context.verify_mode = ssl.CERT_NONE
    host = settings.hosts[0] if settings.hosts else "localhost"
    request = f"GET /accounts/login/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(
                _own_address(settings), settings.port, ssl=context
            )
            writer.write(request.encode())
            status = await reader.readline()
            writer.close()
            if b" 200 " in status:
                return
        await asyncio.sleep(0.1)


def _own_address(settings: Settings) -> str:
    return "127.0.0.1" if settings.host == "0.0.0.0" else settings.host  # noqa: S104


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m webapp.supervise", description=__doc__)
    parser.add_argument("--lan", action="store_true", help="serve https to the local network")
    parser.add_argument("--certificate", default="", help="PEM file to serve instead of our own")
    parser.add_argument("--key", default="", help="PEM file with its private key")
    arguments = parser.parse_args()

    directory = data_dir()
    if not directory.exists():
        sys.exit(f"{directory} does not exist. Run `make setup` first.")
    try:
        with hold_data_dir(directory):
            if arguments.lan or arguments.certificate:
                os.environ.update(prepare(directory, arguments.certificate, arguments.key))
            settings = site_settings()
            if not is_port_free(settings.port):
                sys.exit(f"Port {settings.port} is taken: choose another with PORT=.")
            share_with_engine(settings)
            os.environ.update(
                TRANSCRIBE_DATA_DIR=str(directory),
                PYTHONUNBUFFERED="1",
                # Celery's fear of root is about pickled messages; ours are JSON.
                PYTHONWARNINGS="ignore:You're running the worker with superuser privileges",
            )
            asyncio.run(Supervisor(settings, sys.stdout).run())
    except AlreadyRunningError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
