"""What a recording's own header says of its length, where the decoder believes it too much or not
at all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

CHUNK_HEAD: Final = 8
"""Bytes of a RIFF chunk's name and size."""
FORMAT: Final = struct.Struct("<H2xIIH")
"""Of a WAV's fmt chunk: format, sample rate, bytes in a second, bytes in a frame."""
MAX_CHUNKS: Final = 1000
"""So many are a file made to be looked at for ever."""
UNKNOWN_SIZE: Final = 0x7FFF0000
"""Who writes to a pipe states a size from here on, or 0, for one that is not known yet."""
MIN_UNHEARD_S: Final = 1.0
EVEN_FORMATS: Final = frozenset({1, 3, 6, 7, 0xFFFE})
"""WAV formats, PCM and the like, in which bytes tell the length."""
TAGS: Final = (b"ID3", b"TAG", b"APETAGEX", b"LYRICS")
"""First bytes of what players write around the sound."""
READ_BYTES: Final = 1 << 20
OGG_PAGE: Final = b"OggS"
OGG_HEAD: Final = 27
"""Bytes of a page's head; the last is the count of the sizes behind it, one byte each."""
OGG_MAX_PAGE: Final = OGG_HEAD + 255 + 255 * 255
MPEG_HEAD: Final = 192
"""Bytes from a first frame's start within which its count of frames stands."""
HAS_COUNT: Final = 1
"""Flag of Xing and Info."""


@dataclass(frozen=True, slots=True)
class WavSound:
    """The data chunk of a WAV: where its four bytes of size lie, and what it states.

    `is_short`: sound goes on behind it to the end, as a recorder leaves it that was killed before
    it could write the true size. `stated_s` is None where no length is stated.
    """

    size_at: int
    stated_s: float | None
    is_short: bool


def wav_sound(file: BinaryIO) -> WavSound | None:
    """The data chunk of a RIFF WAV; None where there is none, or in other files."""
    file.seek(0)
    head = file.read(12)
    if head[:4] != b"RIFF" or head[8:] != b"WAVE":
        return None
    end = file.seek(0, 2)
    bytes_per_s, is_even = 0, False
    for name, at, size in _chunks(file, 12, end):
        if name == b"fmt ":
            file.seek(at)
            fields = file.read(min(size, FORMAT.size)).ljust(FORMAT.size, b"\0")
            tag, rate, nominal, block = FORMAT.unpack(fields)
            is_even = tag in EVEN_FORMATS
            bytes_per_s = rate * block if is_even else nominal
        elif name == b"data":
            if not bytes_per_s or not 0 < size < UNKNOWN_SIZE:
                return WavSound(at - 4, None, is_short=False)
            is_short = _is_sound(file, at + size, end, bytes_per_s)
            stated_s = size / bytes_per_s if is_even else None
            return WavSound(at - 4, stated_s, is_short)
    return None


def _chunks(file: BinaryIO, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Name, offset of the content and size of each chunk from `at` on."""
    for _ in range(MAX_CHUNKS):
        if at + CHUNK_HEAD > end:
            return
        file.seek(at)
        head = file.read(CHUNK_HEAD)
        size = int.from_bytes(head[4:], "little")
        yield head[:4], at + CHUNK_HEAD, size
        at += CHUNK_HEAD + size + size % 2


def _is_sound(file: BinaryIO, at: int, end: int, bytes_per_s: int) -> bool:
    """Whether what lies behind a data chunk is more of it: a second or more, neither chunks nor a
    tag nor the zeros of space that was only set aside.
    """
    if end - at < MIN_UNHEARD_S * bytes_per_s:
        return False
    file.seek(at)
    if file.read(CHUNK_HEAD).startswith(TAGS):
        return False
    # A chunk begins at an even offset, but not everybody keeps to it.
    if any(_is_chunk(file, start, end) for start in {at, at + at % 2}):
        return False
    file.seek(at)
    return any(block.strip(b"\0") for block in iter(lambda: file.read(READ_BYTES), b""))


def _is_chunk(file: BinaryIO, at: int, end: int) -> bool:
    found = next(_chunks(file, at, end), None)
    if found is None:
        return False
    name, start, size = found
    return all(0x20 <= byte < 0x7F for byte in name) and start + size <= end + 1


def ends_inside_page(file: BinaryIO) -> bool:
    """Whether an Ogg file breaks off within its last page, which states its size: it was cut."""
    file.seek(0)
    if file.read(4) != OGG_PAGE:
        return False
    end = file.seek(0, 2)
    file.seek(max(0, end - OGG_MAX_PAGE))
    tail = file.read(OGG_MAX_PAGE)
    at = tail.rfind(OGG_PAGE + b"\0")
    if at < 0:
        return False
    page = tail[at:]
    sizes = page[OGG_HEAD : OGG_HEAD + page[OGG_HEAD - 1]] if len(page) >= OGG_HEAD else b""
    is_head_whole = len(page) >= OGG_HEAD and len(sizes) == page[OGG_HEAD - 1]
    return not is_head_whole or len(page) < OGG_HEAD + len(sizes) + sum(sizes)


def mp3_frames(file: BinaryIO) -> int | None:
    """The count of frames that an MP3's first frame states (Xing, Info, VBRI); None without one.

    A bit rate times the size, which is what else there is, would be a guess.
    """
    at, head = 0, b""
    for _ in range(MAX_CHUNKS):
        file.seek(at)
        head = file.read(MPEG_HEAD)
        if head[:3] != b"ID3" or len(head) < 10:
            break
        size = head[6:10]  # of seven bits each
        at += 10 + sum(byte << 7 * (3 - place) for place, byte in enumerate(size))
    for name, count_at in ((b"Xing", 8), (b"Info", 8), (b"VBRI", 14)):
        found = head.find(name, 4, 48)
        count = head[found + count_at : found + count_at + 4]
        if found > 0 and len(count) == 4 and (name == b"VBRI" or head[found + 7] & HAS_COUNT):
            return int.from_bytes(count, "big") or None
    return None
