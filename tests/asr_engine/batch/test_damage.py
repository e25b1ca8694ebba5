"""Words that a damaged recording has lost are never lost in silence, and what is whole is not
called damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE
from asr_engine.batch.player import make_player_file
from asr_engine.batch.probe import AudioProbe, probe
from tests.fakes.containers import voice, write_container

SECONDS = 20.0
KINDS = {
    "flac": ("flac", "flac", 16_000),
    "matroska": ("matroska", "aac", 44_100),
    "webm": ("webm", "libopus", 48_000),
    "ogg": ("ogg", "libopus", 48_000),
    "mp3": ("mp3", "libmp3lame", 44_100),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes of the same recording in each kind."""
    folder = tmp_path_factory.mktemp("whole")
    made: dict[str, bytes] = {}
    for kind, (container, codec, rate) in KINDS.items():
        path = folder / kind
        write_container(path, voice(SECONDS)[None], container=container, codec=codec, rate=rate)
        made[kind] = path.read_bytes()
    return made


def looked_at(folder: Path, data: bytes) -> AudioProbe:
    (folder / "source.bin").write_bytes(data)
    return probe(folder / "source.bin", max_duration_s=600)


def overwritten(data: bytes) -> bytes:
    middle, length = len(data) // 2, len(data) // 10
    noise = np.random.default_rng(3).bytes(length)
    return data[:middle] + noise + data[middle + length :]


def removed(data: bytes) -> bytes:
    middle, length = len(data) // 2, len(data) // 10
    return data[:middle] + data[middle + length :]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_whole_is_not_called_damaged(
    tmp_path: Path, whole: dict[str, bytes], kind: str
) -> None:
    found = looked_at(tmp_path, whole[kind])
    assert not found.is_damaged
    assert found.missing_of_ms is None


@pytest.mark.parametrize("harm", [overwritten, removed], ids=["overwritten", "removed"])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_in_the_middle_is_known_and_not_left_to_the_browser(
    tmp_path: Path, whole: dict[str, bytes], kind: str, harm: Callable[[bytes], bytes]
) -> None:
    assert looked_at(tmp_path, harm(whole[kind])).is_damaged
    assert make_player_file(tmp_path / "source.bin", tmp_path).name == "player.m4a"


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"ogg"}))
def test_a_recording_cut_in_half_tells_what_its_header_states(
    tmp_path: Path, whole: dict[str, bytes], kind: str
) -> None:
    found = looked_at(tmp_path, whole[kind][: len(whole[kind]) // 2])
    assert found.is_damaged
    assert found.missing_of_ms is not None
    assert abs(found.missing_of_ms - 1000 * SECONDS) < 200
    assert found.duration_ms < 700 * SECONDS


@pytest.mark.parametrize("lost", [1, 30, 1000, 9000, None], ids=str)
def test_an_ogg_that_breaks_off_is_known_though_it_states_no_length(
    tmp_path: Path, whole: dict[str, bytes], lost: int | None
) -> None:
    data = whole["ogg"]
    last_page = data.rfind(b"OggS")
    found = looked_at(tmp_path, data[: -lost if lost else last_page + 20])
    assert found.is_damaged
    assert found.missing_of_ms is None


@pytest.mark.parametrize(
    "between",
    [b"", b"ID3\x03\0\0\0\0\x02\0" + bytes(256), b"TAG" + b"x" * 125],
    ids=["nothing", "tag", "old-tag"],
)
def test_joined_mp3s_are_whole(tmp_path: Path, whole: dict[str, bytes], between: bytes) -> None:
    found = looked_at(tmp_path, whole["mp3"] + between + whole["mp3"])
    assert abs(found.duration_ms - 2000 * SECONDS) < 300
    assert not found.is_damaged
    assert found.missing_of_ms is None


def test_an_mp3_of_a_guessed_length_is_not_called_short(tmp_path: Path) -> None:
    """Without a count of frames the library multiplies the first frame's bit rate."""
    path = tmp_path / "source.bin"
    sound = np.concatenate([np.zeros(5 * SAMPLE_RATE, np.float32), voice(10.0)])
    with av.open(str(path), "w", format="mp3", options={"write_xing": "0"}) as output:
        track = output.add_stream("libmp3lame", rate=16_000, layout="mono")
        track.codec_context.qscale = True
        frame = av.AudioFrame.from_ndarray(sound[None], format="fltp", layout="mono")
        frame.sample_rate, frame.pts = SAMPLE_RATE, 0
        output.mux(track.encode(frame))
        output.mux(track.encode(None))
    found = probe(path, max_duration_s=600)
    assert not found.is_damaged
    assert found.missing_of_ms is None


def test_chained_ogg_is_whole(tmp_path: Path, whole: dict[str, bytes]) -> None:
    found = looked_at(tmp_path, whole["ogg"] + whole["ogg"])
    assert abs(found.duration_ms - 2000 * SECONDS) < 300
    assert not found.is_damaged


@pytest.mark.parametrize(
    ("container", "with_video"),
    [("webm", False), ("ogg", False), ("matroska", True)],
    ids=["webm", "ogg", "beside-pictures"],
)
def test_a_pause_without_packets_is_no_damage(
    tmp_path: Path, container: str, with_video: bool
) -> None:
    """What a browser or a telephone system leaves while nothing was sent."""
    path = tmp_path / "source.bin"
    with av.open(str(path), "w", format=container) as output:
        track = output.add_stream("libopus", rate=48_000, layout="mono")
        pictures = output.add_stream("mpeg4", rate=10) if with_video else None
        if pictures is not None:
            pictures.width, pictures.height, pictures.pix_fmt = 320, 240, "yuv420p"
        for second in range(12):
            if pictures is not None:
                noise = np.random.default_rng(second).integers(0, 255, (240, 320, 3), np.uint8)
                picture = av.VideoFrame.from_ndarray(noise, format="rgb24")
                picture.pts = 10 * second
                output.mux(pictures.encode(picture.reformat(format="yuv420p")))
            samples = voice(3.0, seed=second)[None, :]
            frame = av.AudioFrame.from_ndarray(samples, format="flt", layout="mono")
            frame.sample_rate, frame.pts = 48_000, 48_000 * second
            for packet in track.encode(frame):
                if not 4 <= float((packet.pts or 0) * packet.time_base) < 8:
                    output.mux(packet)
        output.mux(track.encode(None))
        if pictures is not None:
            output.mux(pictures.encode(None))
    found = probe(path, max_duration_s=600)
    assert abs(found.duration_ms - 12_000) < 300
    assert not found.is_damaged


def test_pauses_of_a_telephone_are_no_damage(tmp_path: Path) -> None:
    """AMR marks them by frames without sound, which the decoder refuses."""
    spoken = b"\x3c" + bytes(31)
    paused = b"\x44" + bytes(5) + 7 * b"\x7c"
    found = looked_at(tmp_path, b"#!AMR\n" + (20 * spoken + 10 * paused) * 10)
    assert not found.is_damaged


def test_a_track_that_ends_before_the_pictures_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "source.bin"
    with av.open(str(path), "w", format="matroska") as output:
        track = output.add_stream("pcm_s16le", rate=SAMPLE_RATE, layout="mono")
        pictures = output.add_stream("mpeg4", rate=1)
        pictures.width, pictures.height, pictures.pix_fmt = 32, 32, "yuv420p"
        for second in range(10):
            picture = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
            picture.pts = second
            output.mux(pictures.encode(picture.reformat(format="yuv420p")))
            if second < 4:
                pcm = (voice(1.0) * 32767).astype(np.int16)[None]
                frame = av.AudioFrame.from_ndarray(pcm, format="s16", layout="mono")
                frame.sample_rate, frame.pts = SAMPLE_RATE, second * SAMPLE_RATE
                output.mux(track.encode(frame))
        output.mux(track.encode(None))
        output.mux(pictures.encode(None))
    found = probe(path, max_duration_s=600)
    assert found.declared_ms is not None
    assert found.declared_ms > 9000
    assert abs(found.duration_ms - 4000) < 100
    assert not found.is_damaged
