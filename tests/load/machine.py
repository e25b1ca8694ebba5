"""What a benchmark says of the machine that it ran on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Processor, cores, memory."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [line for line in information.read_text().splitlines() if "model name" in line]
        model = names[0].partition(":")[2].strip() if names else model
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores of {model}, {memory_gib:.0f} GiB memory"


def load() -> str:
    """The load average of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"
