"""What a tool may send, as engines hear it."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE
from transcription.realtime.encodings import (
    DELAY_SAMPLES,
    RATES,
    TELEPHONE_RATE,
    AudioFormat,
    ChannelDecoder,
    split_channels,
)

G711 = {"mulaw": "ULAW", "alaw": "ALAW"}


def telephone(encoding: str = "mulaw") -> AudioFormat:
    return AudioFormat(encoding, TELEPHONE_RATE)


def tone(hertz: float, *, seconds: float = 1.0, rate: int = TELEPHONE_RATE) -> NDArray[np.float64]:
    return 0.4 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)


def pcm16(samples: NDArray[np.float64]) -> bytes:
    return (samples * 32767).round().astype("<i2").tobytes()


def encoded(samples: NDArray[np.float64], encoding: str) -> bytes:
    """By libsndfile."""
    file = io.BytesIO()
    soundfile.write(file, samples, TELEPHONE_RATE, format="RAW", subtype=G711[encoding])
    return file.getvalue()


def heard(data: bytes) -> NDArray[np.float64]:
    return np.frombuffer(data, dtype="<i2") / 32768


@pytest.mark.parametrize("encoding", ["mulaw", "alaw"])
def test_every_code_means_what_another_library_says(encoding: str) -> None:
    codes = bytes(range(256))
    file = io.BytesIO(codes)
    expected, _ = soundfile.read(
        file,
        samplerate=TELEPHONE_RATE,
        channels=1,
        format="RAW",
        subtype=G711[encoding],
        dtype="int16",
    )
    decoder = ChannelDecoder(telephone(encoding))
    # The even samples are those that came, later by the filter's delay.
    doubled = np.frombuffer(decoder.decode(0, codes + bytes([codes[0]]) * DELAY_SAMPLES), "<i2")
    assert doubled[2 * DELAY_SAMPLES :: 2].tolist() == expected.tolist()


def test_pcm16_at_the_engines_rate_passes_as_it_is() -> None:
    data = pcm16(tone(440, rate=SAMPLE_RATE))
    assert ChannelDecoder(AudioFormat()).decode(0, data) is data


@pytest.mark.parametrize("encoding", list(RATES))
@pytest.mark.parametrize("hertz", [300, 1000, 3400])
def test_a_tone_of_a_telephone_stays_what_it_was(encoding: str, hertz: int) -> None:
    samples = tone(hertz)
    data = pcm16(samples) if encoding == "pcm16" else encoded(samples, encoding)
    out = heard(ChannelDecoder(telephone(encoding)).decode(0, data))
    assert len(out) == SAMPLE_RATE
    expected = tone(hertz, rate=SAMPLE_RATE)
    late = 2 * DELAY_SAMPLES
    difference = out[late + 100 : -100] - expected[100 : len(expected) - late - 100]
    noise_db = 20 * np.log10(np.std(difference) / np.std(expected))
    assert noise_db < (-50 if encoding == "pcm16" else -34)


def test_nothing_is_added_above_the_telephones_band() -> None:
    out = heard(ChannelDecoder(telephone("pcm16")).decode(0, pcm16(tone(3000))))
    window = np.hanning(len(out))
    power = np.abs(np.fft.rfft(out * window)) ** 2
    hertz = np.fft.rfftfreq(len(out), 1 / SAMPLE_RATE)
    assert 10 * np.log10(power[hertz > 4600].max() / power.max()) < -70


@pytest.mark.parametrize("encoding", list(RATES))
def test_the_cut_into_packets_changes_nothing(encoding: str) -> None:
    data = pcm16(tone(700)) if encoding == "pcm16" else encoded(tone(700), encoding)
    audio_format = telephone(encoding)
    whole = ChannelDecoder(audio_format).decode(0, data)
    decoder, parts, position = ChannelDecoder(audio_format), [], 0
    for samples in [1, 7, 160, 31, 33, 2000] + [320] * 18 + [8]:
        size = samples * audio_format.sample_bytes
        part = data[position * audio_format.sample_bytes :][:size]
        parts.append(decoder.decode(position, part))
        position += len(part) // audio_format.sample_bytes
    assert b"".join(parts) == whole


def test_after_a_jump_nothing_of_before_is_heard() -> None:
    decoder = ChannelDecoder(telephone())
    decoder.decode(0, encoded(tone(700), "mulaw"))
    silence = encoded(np.zeros(400), "mulaw")
    assert not heard(decoder.decode(16_000, silence)).any()


def test_loud_samples_are_cut_and_do_not_turn_over() -> None:
    loud = np.where(np.arange(800) // 8 % 2, 32767, -32768).astype("<i2")
    out = np.frombuffer(ChannelDecoder(telephone("pcm16")).decode(0, loud.tobytes()), "<i2")
    steps = np.abs(np.diff(out.astype(int)))
    assert steps.max() < 65_535
    assert out.max() == 32767


@pytest.mark.parametrize("encoding", ["mulaw", "pcm16"])
def test_two_channels_come_by_turns(encoding: str) -> None:
    audio_format = telephone(encoding)
    size = audio_format.sample_bytes
    data = bytes(range(12))
    left, right = split_channels(data, audio_format)
    frames = [data[start : start + size] for start in range(0, 12, size)]
    assert left == b"".join(frames[0::2])
    assert right == b"".join(frames[1::2])
