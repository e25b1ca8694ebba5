"""Every accepted container sounds the same; nothing else opens; memory does not grow."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.batch.decode import BLOCK_SAMPLES, decode_audio, open_audio
from asr_engine.errors import (
    AudioError,
    BrokenAudioError,
    EmptyAudioError,
    NoAudioTrackError,
    NotAudioError,
)
from tests.fakes.audio import wav_bytes
from tests.fakes.containers import tone, write_container, write_silent_video


def decoded(path: Path) -> FloatSamples:
    return np.concatenate(list(decode_audio(path)))


def loudness(samples: FloatSamples) -> float:
    return float(np.sqrt(np.mean(np.square(samples))))


def pitch(samples: FloatSamples) -> float:
    """Hertz of the strongest tone."""
    return float(np.abs(np.fft.rfft(samples)).argmax() * SAMPLE_RATE / len(samples))


@pytest.mark.parametrize(
    ("container", "codec", "rate"),
    [
        ("wav", "pcm_s16le", 16_000),
        ("wav", "pcm_s24le", 48_000),
        ("wav", "pcm_f32le", 44_100),
        ("wav", "pcm_f64le", 8_000),
        ("wav", "pcm_u8", 11_025),
        ("wav", "pcm_mulaw", 8_000),
        ("wav", "pcm_alaw", 8_000),
        ("aiff", "pcm_s16be", 44_100),
        ("au", "pcm_s16be", 16_000),
        ("caf", "pcm_s16le", 16_000),
        ("flac", "flac", 96_000),
        ("mp3", "libmp3lame", 44_100),
        ("adts", "aac", 44_100),
        ("ipod", "aac", 48_000),
        ("ac3", "ac3", 48_000),
        ("ogg", "libopus", 48_000),
        ("webm", "libopus", 48_000),
        ("matroska", "aac", 16_000),
        ("asf", "wmav2", 44_100),
    ],
)
def test_a_tone_sounds_the_same_from_every_container(
    tmp_path: Path, container: str, codec: str, rate: int
) -> None:
    path = tmp_path / "nameless"
    write_container(path, tone(1.0)[None], container=container, codec=codec, rate=rate)
    samples = decoded(path)
    assert samples.dtype == np.float32
    assert abs(len(samples) / SAMPLE_RATE - 1.0) < 0.08
    assert abs(pitch(samples) - 440) < 5
    assert loudness(samples) == pytest.approx(loudness(tone(1.0)), rel=0.1)


def test_what_the_name_says_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "talk.mp3"
    path.write_bytes(wav_bytes(tone(0.5)))
    assert len(decoded(path)) == SAMPLE_RATE // 2


def test_video_is_heard_by_its_audio_track(tmp_path: Path) -> None:
    path = write_container(
        tmp_path / "v", tone(1.0)[None], container="mp4", codec="aac", with_video=True
    )
    with open_audio(path) as source:
        assert source.has_video
    assert abs(pitch(decoded(path)) - 440) < 5


@pytest.mark.parametrize("channels", [2, 6, 8])
def test_silent_channels_do_not_dilute_the_one_that_speaks(tmp_path: Path, channels: int) -> None:
    sound = np.zeros((channels, SAMPLE_RATE), np.float32)
    sound[-1] = tone(1.0)
    layout = {2: "stereo", 6: "5.1", 8: "7.1"}[channels]
    path = write_container(tmp_path / "a", sound, container="wav", codec="pcm_s16le", layout=layout)
    assert loudness(decoded(path)) == pytest.approx(loudness(tone(1.0)), rel=0.02)


def test_eight_planar_channels_do_not_crash_the_process(tmp_path: Path) -> None:
    """PyAV 18.1 reads past the end of such frames when asked for their array."""
    sound = np.repeat(tone(1.0)[None], 8, axis=0)
    path = write_container(
        tmp_path / "a", sound, container="ipod", codec="aac", layout="7.1", rate=48_000
    )
    assert abs(pitch(decoded(path)) - 440) < 5


def test_channels_in_antiphase_are_still_heard(tmp_path: Path) -> None:
    sound = np.stack([tone(2.0), -tone(2.0)])
    path = write_container(tmp_path / "a", sound, container="flac", codec="flac", layout="stereo")
    assert loudness(decoded(path)) == pytest.approx(loudness(tone(2.0)), rel=0.02)


def test_decoding_from_a_sample_gives_the_rest(tmp_path: Path) -> None:
    path = write_container(tmp_path / "a", tone(3.3)[None], container="flac", codec="flac")
    whole = decoded(path)
    for start in (0, 1, BLOCK_SAMPLES, BLOCK_SAMPLES + 77, len(whole) - 1):
        rest = np.concatenate(list(decode_audio(path, start_sample=start)))
        assert np.array_equal(rest, whole[start:])


def test_blocks_are_one_second_and_only_the_last_is_short(tmp_path: Path) -> None:
    path = write_container(
        tmp_path / "a", tone(2.5)[None], container="ogg", codec="libopus", rate=48_000
    )
    lengths = [len(block) for block in decode_audio(path)]
    assert lengths[:2] == [BLOCK_SAMPLES, BLOCK_SAMPLES]
    assert 0 < lengths[2] < BLOCK_SAMPLES


def test_a_truncated_recording_gives_what_is_there(tmp_path: Path) -> None:
    whole = wav_bytes(tone(2.0))
    path = tmp_path / "cut"
    path.write_bytes(whole[: len(whole) // 2])
    assert abs(len(decoded(path)) - SAMPLE_RATE) < 100


def test_a_wav_that_states_no_size_is_read_to_its_end(tmp_path: Path) -> None:
    data = bytearray(wav_bytes(tone(1.0)))
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    path = tmp_path / "piped"
    path.write_bytes(data)
    assert len(decoded(path)) == SAMPLE_RATE


def test_garbage_in_the_middle_costs_only_itself(tmp_path: Path) -> None:
    path = write_container(
        tmp_path / "a", tone(4.0)[None], container="mp3", codec="libmp3lame", rate=16_000
    )
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = np.random.default_rng(1).bytes(2000)
    path.write_bytes(data)
    assert len(decoded(path)) > 2 * SAMPLE_RATE


def impossible_width(samples: FloatSamples) -> bytes:
    data = bytearray(wav_bytes(samples))
    data[34:36] = struct.pack("<H", 7)
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", EmptyAudioError),
        (wav_bytes(tone(0.0)), EmptyAudioError),
        (b"Dear all, please find attached the minutes.\n" * 50, NotAudioError),
        (b"<html><body>404 Not Found</body></html>", NotAudioError),
        (np.random.default_rng(0).bytes(60_000), NotAudioError),
        (b"\x00\x00\x00\x18ftypM4A \x00\x00\x02\x00isomiso2" + b"\x01" * 5000, BrokenAudioError),
        (b"RIFF\x00\x00\x00\x00WAVEjunk", BrokenAudioError),
        (impossible_width(tone(0.5)), BrokenAudioError),
    ],
    ids=["empty", "header", "text", "html", "random", "m4a", "riff", "bits"],
)
def test_what_is_no_recording_is_refused(
    tmp_path: Path, content: bytes, error: type[AudioError]
) -> None:
    path = tmp_path / "upload"
    path.write_bytes(content)
    with pytest.raises(error):
        decoded(path)


def test_a_video_without_sound_is_refused_as_such(tmp_path: Path) -> None:
    with pytest.raises(NoAudioTrackError):
        decoded(write_silent_video(tmp_path / "v"))


@pytest.mark.parametrize(
    "playlist",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{secret}\n#EXT-X-ENDLIST\n",
        "#EXTM3U\n#EXTINF:10,\nfile://{secret}\n",
        "ffconcat version 1.0\nfile {secret}\n",
        "ffconcat version 1.0\nfile secret.wav\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nm=audio 5004 RTP/AVP 0\n",
        '<?xml version="1.0"?><MPD><Period><BaseURL>{secret}</BaseURL></Period></MPD>',
        "[playlist]\nFile1={secret}\n",
    ],
)
@pytest.mark.parametrize("name", ["talk.wav", "talk.m3u8", "talk.ffconcat", "talk"])
def test_a_playlist_opens_no_other_recording(tmp_path: Path, playlist: str, name: str) -> None:
    secret = tmp_path / "secret.wav"
    secret.write_bytes(wav_bytes(tone(1.0)))
    path = tmp_path / name
    path.write_text(playlist.format(secret=secret))
    with pytest.raises(NotAudioError):
        decoded(path)


def test_a_hole_in_the_time_stamps_is_silence(tmp_path: Path) -> None:
    """What a browser recorded around a dropped connection keeps its clock."""
    import av

    path = tmp_path / "hole.mka"
    with av.open(str(path), "w", format="matroska") as output:
        track = output.add_stream("pcm_s16le", rate=SAMPLE_RATE, layout="mono")
        for start_s in (0, 3):
            samples = (tone(1.0) * 32767).astype(np.int16)[None]
            frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
            frame.sample_rate, frame.pts = SAMPLE_RATE, start_s * SAMPLE_RATE
            output.mux(track.encode(frame))
    samples = decoded(path)
    assert abs(len(samples) - 4 * SAMPLE_RATE) < 100
    assert loudness(samples[2 * SAMPLE_RATE : 5 * SAMPLE_RATE // 2]) == 0.0
    assert loudness(samples[-SAMPLE_RATE // 2 :]) > 0.1
