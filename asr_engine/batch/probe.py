"""What a recording is: container, codec, tracks, decoded duration; or why it cannot be used.

`probe_safely` decodes the whole recording in a child process with limits on memory and time, since
its bytes come from strangers. Whoever calls it may trust what it accepts as far as decoding goes.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from asr_engine.audio import SAMPLE_RATE, samples_to_ms
from asr_engine.batch import confined
from asr_engine.batch.decode import decode_source, open_audio
from asr_engine.errors import AudioTooLongError, BrokenAudioError, EmptyAudioError


@dataclass(frozen=True, slots=True)
class AudioProbe:
    """A recording that can be decoded. `duration_ms` counts decoded samples.

    `declared_ms` is what the container states or the library guesses, if anything. `is_damaged`
    says that parts of it were lost; `missing_of_ms` is the length that its header states where
    it ends before that, else None.
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
    missing_of_ms: int | None


def probe(path: Path, *, max_duration_s: float, track: int | None = None) -> AudioProbe:
    """Decode all of one track in this process, as `open_audio` chooses it. Raises AudioError and
    its children.
    """
    with open_audio(path, track=track) as source:
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
        declared_s, missing_of_s = source.declared_s, source.missing_of_s
        return AudioProbe(
            container=source.container.format.name.split(",")[0],
            codec=context.codec.canonical_name,
            duration_ms=duration_ms,
            declared_ms=None if declared_s is None else int(declared_s * 1000),
            sample_rate=context.sample_rate,
            channels=context.layout.nb_channels,
            audio_tracks=len(source.container.streams.audio),
            has_video=source.has_video,
            is_damaged=source.is_damaged,
            missing_of_ms=None if missing_of_s is None else round(missing_of_s * 1000),
        )


def probe_safely(path: Path, *, max_duration_s: float) -> AudioProbe:
    """`probe` in a child process with limits. A child that dies means BrokenAudioError.

    Raises AudioError and its children, OSError where the file cannot be read.
    """
    with path.open("rb"):
        pass  # a missing file is the caller's fault, not the recording's
    return AudioProbe(**confined.run(__name__, str(path), str(max_duration_s)))


def main() -> None:
    path, max_duration_s = Path(sys.argv[1]), float(sys.argv[2])
    confined.answer(lambda: asdict(probe(path, max_duration_s=max_duration_s)))


if __name__ == "__main__":
    main()
