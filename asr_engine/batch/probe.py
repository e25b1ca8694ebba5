"""What a recording is: container, codec, tracks, decoded duration; or why it cannot be used.

`probe_safely` decodes the whole recording in a child process with limits on memory and time, since
its bytes come from strangers. Whoever calls it may trust what it accepts as far as decoding goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from asr_engine import errors
from asr_engine.audio import SAMPLE_RATE, samples_to_ms
from asr_engine.batch.decode import decode_source, open_audio
from asr_engine.errors import AudioError, AudioTooLongError, BrokenAudioError, EmptyAudioError

MEMORY_LIMIT_BYTES: Final = 2 << 30
TIME_LIMIT_S: Final = 1800
"""Wall and CPU seconds: twelve hours of compressed audio take a tenth of it."""
DAMAGED_SHARE: Final = 0.01
"""Share of packets that do not decode above which the recording is called damaged."""


@dataclass(frozen=True, slots=True)
class AudioProbe:
    """A recording that can be decoded. `duration_ms` counts decoded samples.

    `declared_ms` is what the container states, if anything; `is_damaged` says that parts of it did
    not decode.
    """

    container: str
    codec: str
    duration_ms: int
    declared_ms: int | None
    sample_rate: int
    channels: int
    audio_tracks: int
    has_video: bool
    is_damaged: bool


def probe(path: Path, *, max_duration_s: float) -> AudioProbe:
    """Decode the whole recording in this process. Raises AudioError and its children."""
    with open_audio(path) as source:
        samples = 0
        for block in decode_source(source):
            samples += len(block)
            if samples > max_duration_s * SAMPLE_RATE:
                raise AudioTooLongError
        duration_ms = samples_to_ms(samples)
        if not duration_ms:
            raise EmptyAudioError
        if source.bad_packets > source.good_packets:
            raise BrokenAudioError("most packets do not decode")
        context = source.stream.codec_context
        declared_s = source.declared_s
        return AudioProbe(
            container=source.container.format.name.split(",")[0],
            codec=context.codec.canonical_name,
            duration_ms=duration_ms,
            declared_ms=None if declared_s is None else int(declared_s * 1000),
            sample_rate=context.sample_rate,
            channels=context.layout.nb_channels,
            audio_tracks=len(source.container.streams.audio),
            has_video=source.has_video,
            is_damaged=source.bad_packets > DAMAGED_SHARE * source.good_packets,
        )


def probe_safely(path: Path, *, max_duration_s: float) -> AudioProbe:
    """`probe` in a child process with limits. A child that dies means BrokenAudioError.

    Raises AudioError and its children, OSError where the file cannot be read.
    """
    with path.open("rb"):
        pass  # a missing file is the caller's fault, not the recording's
    command = [sys.executable, "-m", "asr_engine.batch.probe", str(path), str(max_duration_s)]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "OPENBLAS_NUM_THREADS": "1",  # its buffers would count as memory
    }
    try:
        child = subprocess.run(  # noqa: S603 - our own module and a path given as one argument
            command,
            check=False,
            capture_output=True,
            env=environment,
            timeout=TIME_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise BrokenAudioError("decoding took too long") from None
    answer: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        answer = json.loads(child.stdout)
    if "probe" in answer:
        return AudioProbe(**answer["probe"])
    raise _ERRORS.get(answer.get("code", ""), BrokenAudioError)()


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


def main() -> None:
    """The child: limits itself, decodes, prints one JSON object, writes no file."""
    _limit(resource.RLIMIT_AS, MEMORY_LIMIT_BYTES)
    _limit(resource.RLIMIT_CPU, TIME_LIMIT_S)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    path, max_duration_s = Path(sys.argv[1]), float(sys.argv[2])
    answer: dict[str, Any]
    try:
        answer = {"probe": asdict(probe(path, max_duration_s=max_duration_s))}
    except AudioError as error:
        answer = {"code": error.code}
    except MemoryError:
        answer = {"code": BrokenAudioError.code}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
