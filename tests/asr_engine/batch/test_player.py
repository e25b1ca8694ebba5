"""What the page plays can be sought in, keeps the clock, and is a copy where it can be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.batch.player import MAX_PEAKS, PEAKS_NAME, PlayerFile, make_player_file
from asr_engine.batch.probe import probe
from asr_engine.errors import NotAudioError
from tests.fakes.audio import wav_bytes
from tests.fakes.containers import tone, write_container


def peaks(folder: Path) -> list[int]:
    return list(json.loads((folder / PEAKS_NAME).read_text()))


@pytest.mark.parametrize(
    ("container", "codec", "rate", "media_type"),
    [
        ("wav", "pcm_s16le", 16_000, "audio/wav"),
        ("mp3", "libmp3lame", 44_100, "audio/mpeg"),
        ("flac", "flac", 48_000, "audio/flac"),
        ("ipod", "aac", 44_100, "audio/mp4"),
    ],
)
def test_what_browsers_play_is_played_as_it_came(
    tmp_path: Path, container: str, codec: str, rate: int, media_type: str
) -> None:
    source = write_container(
        tmp_path / "source.bin", tone(1.0)[None], container=container, codec=codec, rate=rate
    )
    assert make_player_file(source, tmp_path) == PlayerFile("source.bin", media_type)
    assert sorted(path.name for path in tmp_path.iterdir()) == [PEAKS_NAME, "source.bin"]


@pytest.mark.parametrize(
    ("container", "codec", "rate", "with_video", "player"),
    [
        ("mp4", "aac", 48_000, True, PlayerFile("player.m4a", "audio/mp4")),
        ("adts", "aac", 44_100, False, PlayerFile("player.m4a", "audio/mp4")),
        ("webm", "libopus", 48_000, False, PlayerFile("player.webm", "audio/webm")),
        ("ogg", "libopus", 48_000, False, PlayerFile("player.webm", "audio/webm")),
        ("aiff", "pcm_s16be", 44_100, False, PlayerFile("player.m4a", "audio/mp4")),
        ("wav", "pcm_mulaw", 8_000, False, PlayerFile("player.m4a", "audio/mp4")),
        ("asf", "wmav2", 44_100, False, PlayerFile("player.m4a", "audio/mp4")),
    ],
)
def test_the_rest_is_made_to_be_sought_in(
    tmp_path: Path, container: str, codec: str, rate: int, with_video: bool, player: PlayerFile
) -> None:
    source = write_container(
        tmp_path / "source.bin",
        tone(2.0)[None],
        container=container,
        codec=codec,
        rate=rate,
        with_video=with_video,
    )
    before = probe(source, max_duration_s=60)
    assert make_player_file(source, tmp_path) == player
    after = probe(tmp_path / player.name, max_duration_s=60)
    assert after.declared_ms is not None
    assert not after.has_video
    assert abs(after.duration_ms - before.duration_ms) < 100
    assert not list(tmp_path.glob(".*"))


def test_a_wav_of_untrue_size_is_not_left_to_the_browser(tmp_path: Path) -> None:
    data = bytearray(wav_bytes(tone(1.0)))
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    source = tmp_path / "source.bin"
    source.write_bytes(data)
    assert make_player_file(source, tmp_path).name == "player.m4a"


def test_surround_is_played_as_the_models_hear_it(tmp_path: Path) -> None:
    sound = np.repeat(tone(1.0)[None], 6, axis=0)
    source = write_container(
        tmp_path / "source.bin", sound, container="wav", codec="pcm_s16le", layout="5.1"
    )
    assert make_player_file(source, tmp_path).name == "player.m4a"
    assert probe(tmp_path / "player.m4a", max_duration_s=60).channels == 1


def test_the_waveform_is_bounded_and_shows_where_sound_is(tmp_path: Path) -> None:
    samples: FloatSamples = np.concatenate(
        [np.zeros(300 * SAMPLE_RATE, np.float32), tone(10.0, level=0.05)]
    )
    source = tmp_path / "source.bin"
    source.write_bytes(wav_bytes(samples))
    make_player_file(source, tmp_path)
    values = peaks(tmp_path)
    assert len(values) <= MAX_PEAKS
    assert max(values) == 100
    assert values[0] == 0
    assert all(0 <= value <= 100 for value in values)


def test_a_silent_recording_has_a_flat_waveform(tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(wav_bytes(np.zeros(SAMPLE_RATE, np.float32)))
    make_player_file(source, tmp_path)
    assert set(peaks(tmp_path)) == {0}


def test_it_may_be_made_again(tmp_path: Path) -> None:
    source = write_container(
        tmp_path / "source.bin", tone(1.0)[None], container="aiff", codec="pcm_s16be"
    )
    assert make_player_file(source, tmp_path) == make_player_file(source, tmp_path)


def test_what_is_no_recording_leaves_nothing_behind(tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_text("text " * 100)
    with pytest.raises(NotAudioError):
        make_player_file(source, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["source.bin"]
