"""Any accepted container to 16 kHz float32, mono or by channel, as a stream in bounded memory.

The decoder gets an open file and never a path, so it sees neither names nor neighbours. Containers
are an allow-list and every protocol is refused: a playlist in disguise opens nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.batch.damage import MAX_HOLE_S, MIN_HOLE_S, MIN_LOST_S, Damage
from asr_engine.batch.downmix import Downmix
from asr_engine.batch.headers import ends_inside_page, mp3_frames, wav_sound
from asr_engine.errors import (
    BrokenAudioError,
    EmptyAudioError,
    NoAudioTrackError,
    NotAudioError,
)

CONTAINERS: Final = (
    *("wav", "w64", "aiff", "au", "caf", "flac", "mp3", "aac", "ac3", "eac3", "amr", "ogg"),
    *("matroska", "webm", "mov", "mp4", "m4a", "3gp", "asf"),
)
"""FFmpeg's names of the demuxers that may open a recording."""

SIGNATURES: Final = (
    *((0, magic) for magic in (b"RIFF", b"RF64", b"FORM", b".snd", b"caff", b"fLaC", b"ID3")),
    *((0, magic) for magic in (b"OggS", b"#!AMR", b"\x1aE\xdf\xa3", b"0&\xb2u", b"riff")),
    (4, b"ftyp"),
)
"""Offset and first bytes of accepted containers: what has them and does not open is damaged."""

WAV_HEADER: Final = struct.Struct("<4s8x4s4xH12xH")
"""RIFF, name of the first chunk, format tag, bits of a sample."""
WAV_PCM: Final = 1

BLOCK_SAMPLES: Final = SAMPLE_RATE
"""Samples in each block but the last: one second."""
GUESSED: Final = frozenset({"aac", "ac3", "eac3", "amr", "ogg"})
"""Containers that state no length: the library guesses it by the bit rate, or by what is there."""
DAMAGED_SHARE: Final = 0.01
"""Share of packets that do not decode above which the recording is called damaged."""
MIN_MISSING_S: Final = 1.0
"""A stated length is not wrong before it errs by this much."""
READ_BYTES: Final = 1 << 18


class _NamelessFile:
    """What FFmpeg may do with an open file. It guesses by content, since there is no name.

    `unsized_at`: offset of four bytes of size that are read as "to the end of the file".
    """

    def __init__(self, file: BinaryIO, *, unsized_at: int | None) -> None:
        self._file = file
        self._unsized_at = unsized_at
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        at = self._file.tell()
        read = self._file.read(size)
        if self._unsized_at is None or at >= self._unsized_at + 4:
            return read
        changed = bytearray(read)
        end = min(len(read), self._unsized_at + 4 - at)
        for place in range(max(0, self._unsized_at - at), end):
            changed[place] = 0xFF
        return bytes(changed)


@dataclass(slots=True)
class AudioSource:
    """An opened container and the audio track that is heard."""

    container: Any
    stream: Any
    damage: Damage
    own_stated_s: float | None = None
    """Length by the header of a WAV or MP3, which the library does not tell as it is."""
    has_true_header: bool = True
    """Not so in a WAV that holds more than its header states."""
    is_cut: bool = False
    """The bytes end where more are announced."""
    bad_packets: int = 0
    good_packets: int = 0
    decoded_s: float = 0.0

    @property
    def track(self) -> int:
        """Which of the container's audio tracks this is."""
        return [stream.index for stream in self.container.streams.audio].index(self.stream.index)

    @property
    def channels(self) -> int:
        return int(self.stream.codec_context.layout.nb_channels)

    @property
    def declared_s(self) -> float | None:
        """Duration that the container states, if it does; may be wrong."""
        import av

        if self.container.duration is None:
            return None
        return max(0.0, float(self.container.duration) / av.time_base)

    @property
    def missing_of_s(self) -> float | None:
        """Once all is decoded: the length that the header states where the recording ends before
        it. None where it does not, or where none is stated.
        """
        name = self.container.format.name.split(",")[0]
        stated_s = self.own_stated_s
        if stated_s is None and name not in GUESSED | {"mp3", "wav"}:
            stated_s = self._track_s or self.declared_s
        held_s = max(self.decoded_s, self.damage.other_end_s - _origin_s(self))
        return stated_s if stated_s and stated_s - held_s > MIN_MISSING_S else None

    @property
    def _track_s(self) -> float | None:
        duration = self.stream.duration
        return None if duration is None else float(duration * self.stream.time_base)

    @property
    def is_damaged(self) -> bool:
        """Once all is decoded: whether sound of the recording was lost, in it or at its end."""
        is_bad = self.bad_packets > DAMAGED_SHARE * self.good_packets
        is_short = self.is_cut or self.missing_of_s is not None
        return is_bad or is_short or self.damage.lost_s > MIN_LOST_S

    @property
    def has_video(self) -> bool:
        """Moving pictures; a cover image is none."""
        return any(not _is_cover(stream) for stream in self.container.streams.video)


def _is_cover(stream: Any) -> bool:
    from av.stream import Disposition

    return bool(stream.disposition & Disposition.attached_pic)


@contextmanager
def open_audio(path: Path, *, track: int | None = None) -> Iterator[AudioSource]:
    """Open a recording at one of its audio tracks: without `track` the default one, else FFmpeg's
    best.

    Raises EmptyAudioError, NotAudioError, BrokenAudioError, NoAudioTrackError.
    """
    import av

    av.logging.set_level(av.logging.PANIC)  # its lines would quote what people recorded
    with path.open("rb") as file:
        head = file.read(WAV_HEADER.size)
        if not head:
            raise EmptyAudioError
        _check_wav(head)
        wav = wav_sound(file)
        frames = mp3_frames(file)
        is_cut = ends_inside_page(file)
        file.seek(0)
        nameless = _NamelessFile(file, unsized_at=wav.size_at if wav and wav.is_short else None)
        options = {"format_whitelist": ",".join(CONTAINERS), "protocol_whitelist": ""}
        try:
            container = av.open(nameless, options=options, buffer_size=READ_BYTES)
        except (av.FFmpegError, ValueError):
            if any(head[at : at + len(magic)] == magic for at, magic in SIGNATURES):
                raise BrokenAudioError("the container does not open") from None
            raise NotAudioError from None
        with container:
            stream = _track(container, track)
            if stream.codec_context is None:
                raise BrokenAudioError("no decoder for this codec")
            stream.codec_context.thread_type = "AUTO"
            source = AudioSource(container, stream, Damage(container, stream), is_cut=is_cut)
            if wav is not None:
                source.own_stated_s, source.has_true_header = wav.stated_s, not wav.is_short
            elif frames is not None and container.format.name == "mp3":
                source.own_stated_s = frames * _mp3_frame_s(stream)
            yield source


def _mp3_frame_s(stream: Any) -> float:
    rate = stream.codec_context.sample_rate
    return (1152 if rate >= 32_000 else 576) / rate if rate else 0.0


def _track(container: Any, track: int | None) -> Any:
    streams = container.streams.audio
    if not streams or (track is not None and track >= len(streams)):
        raise NoAudioTrackError
    return streams[track] if track is not None else container.streams.best("audio") or streams[0]


def _check_wav(head: bytes) -> None:
    """Refuse PCM whose header states a width that no samples have: it would decode as noise."""
    if len(head) == WAV_HEADER.size:
        riff, fmt, tag, bits = WAV_HEADER.unpack(head)
        if riff in {b"RIFF", b"RF64"} and fmt == b"fmt " and tag == WAV_PCM and bits % 8:
            raise BrokenAudioError("PCM of an impossible width")


def decode_audio(path: Path, *, start_sample: int = 0) -> Iterator[FloatSamples]:
    """Blocks of float32 [BLOCK_SAMPLES] at 16 kHz mono, from `start_sample` on; the last is short.

    Sample 0 is where a player starts. What is damaged is left out as silence; a truncated
    recording gives what is there. Raises what `open_audio` raises, BrokenAudioError where no
    packet can be decoded, EmptyAudioError where there are no samples.
    """
    with open_audio(path) as source:
        yield from skip_to(decode_source(source), start_sample)


def skip_to(blocks: Iterator[FloatSamples], start_sample: int) -> Iterator[FloatSamples]:
    """The same samples, [n] or [channels, n], without those before `start_sample`.

    Reading on from the start costs a thousandth of the audio's length and is exact in every
    container; seeking is neither.
    """
    position = 0
    for block in blocks:
        skipped = max(0, start_sample - position)
        length = block.shape[-1]
        position += length
        if skipped < length:
            yield block[..., skipped:]


def decode_source(source: AudioSource) -> Iterator[FloatSamples]:
    """`decode_audio` of an opened source from its start."""
    downmix = Downmix()
    return (downmix.mono(block) for block in _blocks(source))


def decode_channels(source: AudioSource, channels: int) -> Iterator[FloatSamples]:
    """As `decode_source`, with each of the first `channels` channels on its own: [channels, n].

    Where there are fewer, all hear the first.
    """
    for block in _blocks(source):
        if len(block) < channels:
            yield np.repeat(block[:1], channels, axis=0)
        else:
            yield block[:channels]


def decode_spot(source: AudioSource, start_s: float, length_s: float) -> FloatSamples:
    """About `length_s` of audio [channels, n] from about `start_s` on: as near as the container can
    be sought in, its beginning where it cannot. Without a column where nothing decodes there.
    """
    import av

    with suppress(av.FFmpegError):
        source.container.seek(int((start_s + _origin_s(source)) * av.time_base))
    pieces: list[FloatSamples] = []
    wanted = round(length_s * SAMPLE_RATE)
    for piece in _pieces(source, origin_s=None):
        pieces.append(piece)
        wanted -= piece.shape[1]
        if wanted <= 0:
            break
    return _join(pieces) if pieces else np.zeros((1, 0), np.float32)


def _blocks(source: AudioSource) -> Iterator[FloatSamples]:
    """Float32 [channels, BLOCK_SAMPLES] at 16 kHz; the last is short."""
    held: list[NDArray[np.float32]] = []
    held_samples = total = 0
    for piece in _pieces(source, origin_s=_origin_s(source)):
        held.append(piece)
        held_samples += piece.shape[1]
        total += piece.shape[1]
        if held_samples < BLOCK_SAMPLES:
            continue
        joined = _join(held)
        whole = held_samples - held_samples % BLOCK_SAMPLES
        for start in range(0, whole, BLOCK_SAMPLES):
            yield joined[:, start : start + BLOCK_SAMPLES]
        held, held_samples = [joined[:, whole:]], held_samples - whole
    if held_samples:
        yield _join(held)
    if not total:
        raise BrokenAudioError("nothing decodes") if source.bad_packets else EmptyAudioError


def _join(pieces: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Pieces [channels, n] in a row; a change of channels inside a recording is evened out."""
    channels = max(piece.shape[0] for piece in pieces)
    return np.concatenate(
        [
            piece if piece.shape[0] == channels else np.repeat(piece[:1], channels, axis=0)
            for piece in pieces
        ],
        axis=1,
    )


def _pieces(source: AudioSource, *, origin_s: float | None) -> Iterator[NDArray[np.float32]]:
    """Resampled float32 [channels, n] in a row, holes in the time stamps filled with zeros.

    The first piece begins at the time stamp `origin_s`; None: wherever it is.
    """
    import av

    resampler: Any = None
    shape: tuple[Any, ...] = ()
    position_s = 0.0
    for frame in _frames(source):
        if not frame.samples or not frame.sample_rate:
            continue
        if frame.time is not None:
            origin_s = frame.time if origin_s is None else origin_s
            gap_s = frame.time - origin_s - position_s
            if MIN_HOLE_S < gap_s < MAX_HOLE_S:
                yield np.zeros((1, round(gap_s * SAMPLE_RATE)), np.float32)
                position_s += gap_s
            elif gap_s >= MAX_HOLE_S:
                origin_s += gap_s
        position_s += frame.samples / frame.sample_rate
        source.decoded_s = position_s
        frame_shape = (frame.format.name, frame.sample_rate, frame.layout.name)
        if frame_shape != shape:
            if resampler is not None:
                yield from _arrays(resampler.resample(None))
            # Interleaved: PyAV reads past the end of planar frames with eight channels and more.
            resampler = av.AudioResampler(format="flt", layout=frame.layout, rate=SAMPLE_RATE)
            shape = frame_shape
        frame.pts = None  # the resampler would stretch to uneven stamps
        yield from _arrays(resampler.resample(frame))
    if resampler is not None:
        yield from _arrays(resampler.resample(None))


def _origin_s(source: AudioSource) -> float:
    """Time stamp at which a player starts: that of the container's earliest track."""
    import av

    start = source.container.start_time
    return 0.0 if start is None else float(start) / av.time_base


def _arrays(frames: list[Any]) -> Iterator[NDArray[np.float32]]:
    """Interleaved frames as float32 [channels, n], free of infinities."""
    for frame in frames:
        if frame.samples:
            interleaved = frame.to_ndarray().reshape(frame.samples, -1)
            yield np.nan_to_num(interleaved.T, posinf=0.0, neginf=0.0)


def _frames(source: AudioSource) -> Iterator[Any]:
    """Decoded frames; packets that do not decode are counted and left out."""
    import av

    damage = source.damage
    packets = source.container.demux()  # of all tracks: their bytes are no damage to this one
    while True:
        try:
            packet = next(packets)
        except (StopIteration, av.FFmpegError):
            return  # the end, or what is left of a truncated container
        damage.read(packet)
        if packet.stream_index != source.stream.index:
            continue
        try:
            frames = packet.decode()
        except (av.FFmpegError, ValueError):
            if not damage.is_pause(packet):
                source.bad_packets += 1
                damage.bad(packet)
            continue
        if packet.size:
            source.good_packets += 1
            damage.good(packet)
        yield from frames
