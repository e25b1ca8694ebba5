"""A header's own word on the length: believed, mended or known to be none."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE
from asr_engine.batch.decode import decode_audio
from asr_engine.batch.headers import mp3_frames, wav_sound
from asr_engine.batch.player import make_player_file
from asr_engine.batch.probe import probe
from tests.fakes.audio import wav_bytes
from tests.fakes.containers import voice, write_container

LONG_S = 6


def stating(seconds: float, behind: bytes = b"") -> bytes:
    """A WAV of LONG_S whose sizes state `seconds`, with something behind its samples."""
    size = round(2 * seconds * SAMPLE_RATE)
    whole = bytearray(wav_bytes(voice(LONG_S)))
    whole[4:8], whole[40:44] = struct.pack("<I", size + 36), struct.pack("<I", size)
    return bytes(whole) + behind


@pytest.mark.parametrize("seconds", [0.5, 2.0, LONG_S - 1.0], ids=["short", "third", "most"])
def test_a_wav_is_heard_to_its_end_whatever_its_header_says(tmp_path: Path, seconds: float) -> None:
    """As a recorder leaves it that was killed before it wrote the true size."""
    path = tmp_path / "source.bin"
    path.write_bytes(stating(seconds))
    assert sum(len(block) for block in decode_audio(path)) == LONG_S * SAMPLE_RATE
    found = probe(path, max_duration_s=60)
    assert not found.is_damaged
    assert found.missing_of_ms is None
    assert make_player_file(path, tmp_path).name == "player.m4a"


@pytest.mark.parametrize(
    "behind",
    [
        b"LIST" + struct.pack("<I", 200_000) + b"x" * 200_000,
        b"ID3\x03" + bytes(range(256)) * 800,
        bytes(10 * 2 * SAMPLE_RATE),
        b"\x01\x02\x03",
    ],
    ids=["chunk", "tag", "set-aside", "stray"],
)
def test_what_is_no_sound_behind_a_wav_is_not_heard(tmp_path: Path, behind: bytes) -> None:
    path = tmp_path / "source.bin"
    path.write_bytes(stating(LONG_S, behind))
    assert sum(len(block) for block in decode_audio(path)) == LONG_S * SAMPLE_RATE
    found = wav_sound(io.BytesIO(path.read_bytes()))
    assert found is not None
    assert not found.is_short
    assert found.stated_s == LONG_S


@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0xFFFFFFFF], ids=["none", "largest", "unknown"])
def test_a_size_that_stands_for_none_states_no_length(size: int) -> None:
    data = bytearray(wav_bytes(voice(1.0)))
    data[40:44] = struct.pack("<I", size)
    found = wav_sound(io.BytesIO(data))
    assert found is not None
    assert (found.stated_s, found.is_short) == (None, False)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"RIFF",
        b"RIFF\0\0\0\0WAVE",
        b"RIFF\0\0\0\0WAVEdata\xff\0\0\0" + bytes(100),
        b"RIFF\0\0\0\0WAVEfmt \x02\0\0\0\x01\0data\x08\0\0\0" + bytes(range(1, 100)),
        b"RIFF\0\0\0\0WAVE" + bytes(100_000),
        b"ID3",
        b"ID3\x03\0\0\0\0\0\0" * 5000,
        b"\xff\xfb\x90\0" + bytes(32) + b"Info",
        b"\xff\xfb\x90\0" + bytes(32) + b"VBRI\0",
    ],
    ids=[
        *("empty", "riff", "no-chunk", "no-format", "half-format", "zeros"),
        *("half-tag", "tags", "info", "vbri"),
    ],
)
def test_half_a_header_states_nothing(head: bytes) -> None:
    found = wav_sound(io.BytesIO(head))
    assert found is None or (found.stated_s is None and not found.is_short)
    assert mp3_frames(io.BytesIO(head)) is None


def test_an_mp3_states_its_frames_behind_any_tags(tmp_path: Path) -> None:
    path = write_container(
        tmp_path / "a", voice(3.0)[None], container="mp3", codec="libmp3lame", rate=16_000
    )
    data = path.read_bytes()
    frames = mp3_frames(io.BytesIO(data))
    assert frames is not None
    assert abs(frames * 576 / 16_000 - 3.0) < 0.15
    tag = b"ID3\x03\0\0\0\0\x02\0" + bytes(256)
    assert mp3_frames(io.BytesIO(tag + data)) == frames
    assert mp3_frames(io.BytesIO(np.random.default_rng(0).bytes(4000))) is None
