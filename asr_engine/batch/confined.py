"""Work on bytes that come from strangers, in a child process with limits.

The parent calls `run` with a module whose main calls `answer`. The limits are on memory, time and
what the child writes; a child that dies, hangs or talks nonsense means a broken recording.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from asr_engine import errors
from asr_engine.errors import AudioError, BrokenAudioError

MEMORY_LIMIT_BYTES: Final = 2 << 30
TIME_LIMIT_S: Final = 1800
"""Wall and CPU seconds: twelve hours of compressed audio take a tenth of it."""


def run(module: str, *arguments: str) -> dict[str, Any]:
    """What `module` answers as a child process with `arguments`.

    Raises AudioError and its children, and OSError, as the child did.
    """
    environment = {name: value for name, value in os.environ.items() if name.startswith("ASR_")}
    environment |= {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "OPENBLAS_NUM_THREADS": "1",  # its buffers would count as memory
    }
    try:
        child = subprocess.run(  # noqa: S603 - our own module; each argument stays one
            [sys.executable, "-m", module, *arguments],
            check=False,
            capture_output=True,
            env=environment,
            timeout=TIME_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise BrokenAudioError("decoding took too long") from None
    answered: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        answered = json.loads(child.stdout)
    if "result" in answered:
        return dict(answered["result"])
    if "errno" in answered:
        raise OSError(answered["errno"], os.strerror(answered["errno"]))
    raise _ERRORS.get(answered.get("code", ""), BrokenAudioError)()


def answer(work: Callable[[], dict[str, Any]], *, written_bytes: int = 0) -> None:
    """The child: limit itself, work, print one JSON object. No file grows above `written_bytes`."""
    _limit(resource.RLIMIT_AS, MEMORY_LIMIT_BYTES)
    _limit(resource.RLIMIT_CPU, TIME_LIMIT_S)
    _limit(resource.RLIMIT_FSIZE, written_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    answered: dict[str, Any]
    try:
        answered = {"result": work()}
    except AudioError as error:
        answered = {"code": error.code}
    except OSError as error:
        answered = {"errno": error.errno} if error.errno else {"code": BrokenAudioError.code}
    except MemoryError:
        answered = {"code": BrokenAudioError.code}
    sys.stdout.write(json.dumps(answered))


def _audio_errors(base: type[AudioError]) -> dict[str, type[AudioError]]:
    found = {base.code: base}
    for child in base.__subclasses__():
        found.update(_audio_errors(child))
    return found


_ERRORS: Final = _audio_errors(errors.AudioError)


def _limit(kind: int, value: int) -> None:
    """Lower a limit of this process, never above what it is already."""
    _, hard = resource.getrlimit(kind)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (bound, bound))
