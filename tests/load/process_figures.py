"""What the processes of a supervised server used while something ran: CPU, memory, descriptors."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.e2e.conftest import Server

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds_of(process_id: int) -> float:
    """CPU time that a process has used. Raises OSError for one that has ended."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _figures_of(process_id: int) -> dict[str, float]:
    """CPU seconds, resident MiB and open descriptors. Raises OSError for one that has ended."""
    folder = Path(f"/proc/{process_id}")
    return {
        "cpu_s": cpu_seconds_of(process_id),
        "memory_mib": round(int((folder / "statm").read_text().split()[1]) * PAGE_BYTES / 2**20, 1),
        "descriptors": len(list((folder / "fd").iterdir())),
    }


class ProcessWatch:
    """Samples every process of `server` each `sample_s`, from entering to leaving."""

    def __init__(self, server: Server, *, sample_s: float) -> None:
        self._server = server
        self._sample_s = sample_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started_s = 0.0
        self.samples: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        self._started_s = time.monotonic()
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._sample()

    def figures(self) -> dict[str, dict[str, float]]:
        """By process: its share of a core, and memory and descriptors at the start (a quarter in)
        and the end (three quarters)."""
        first, last = self.samples[0], self.samples[-1]
        elapsed_s = last["at_s"] - first["at_s"]
        early = self.samples[len(self.samples) // 4]
        late = self.samples[len(self.samples) * 3 // 4]
        figures = {}
        for name in sorted(first["by_name"].keys() & last["by_name"].keys()):
            used_s = last["by_name"][name]["cpu_s"] - first["by_name"][name]["cpu_s"]
            figures[name] = {"cores": round(used_s / elapsed_s, 3)}
            for key in ("memory_mib", "descriptors"):
                figures[name][f"{key}_early"] = early["by_name"].get(name, {}).get(key, 0)
                figures[name][f"{key}_late"] = late["by_name"].get(name, {}).get(key, 0)
        return figures

    def _run(self) -> None:
        while not self._done.wait(self._sample_s):
            self._sample()

    def _sample(self) -> None:
        by_name = {}
        for path in (self._server.data_dir / "run").glob("*.pid"):
            # It may end and come back between two looks.
            with contextlib.suppress(OSError, ValueError):
                by_name[path.stem] = _figures_of(int(path.read_text()))
        at_s = round(time.monotonic() - self._started_s, 1)
        self.samples.append({"at_s": at_s, "by_name": by_name})
