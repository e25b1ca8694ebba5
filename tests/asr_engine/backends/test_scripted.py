from __future__ import annotations

import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples, float_to_pcm16, pcm16_to_float
from asr_engine.backends.scripted import (
    BLOCK_SAMPLES,
    TELEPHONE_WORD_COUNT,
    WORD_COUNT,
    ScriptedBatchModel,
    ScriptedDetector,
    ScriptedModel,
    WordReader,
    encode_blocks,
    script,
    script_text,
)
from asr_engine.errors import StreamError
from asr_engine.ports import Chunk, DecodeOptions, Window
from asr_engine.results import join_words

BLOCKS = script(40, first=1000)


def read(samples: FloatSamples) -> str:
    reader = WordReader(0)
    reader.hear(samples)
    reader.end_run()
    return join_words(reader.words)


def resampled(samples: FloatSamples, rate: int) -> FloatSamples:
    """To `rate` and back by interpolation, which shifts and dulls."""
    there = np.interp(
        np.arange(0, len(samples), SAMPLE_RATE / rate), np.arange(len(samples)), samples
    )
    back = np.interp(np.arange(0, len(there), rate / SAMPLE_RATE), np.arange(len(there)), there)
    return back.astype(np.float32)


def test_words_are_read_back() -> None:
    assert read(encode_blocks(BLOCKS)) == script_text(BLOCKS)


def test_the_greatest_number_is_read_back() -> None:
    assert read(encode_blocks([WORD_COUNT - 1])) == f"w{WORD_COUNT - 1}"


def test_words_in_a_telephones_band_are_read_back() -> None:
    blocks = script(24, first=TELEPHONE_WORD_COUNT - 24)
    clean = encode_blocks(blocks, is_telephone=True)
    power = np.abs(np.fft.rfft(clean)) ** 2
    assert power[np.fft.rfftfreq(len(clean), 1 / SAMPLE_RATE) > 3500].sum() < 1e-3 * power.sum()
    assert read(pcm16_to_float(float_to_pcm16(clean))) == script_text(blocks)


def test_pcm16_gain_noise_shift_and_resampling_leave_it_readable() -> None:
    clean = encode_blocks(BLOCKS)
    noise = np.random.default_rng(1).normal(0, 0.002, len(clean)).astype(np.float32)
    for heard in (
        pcm16_to_float(float_to_pcm16(clean)),
        clean * 0.1,
        clean + noise,
        clean[777:],
        resampled(clean, 48_000),
        resampled(clean, 44_100),
    ):
        assert read(heard) == script_text(BLOCKS)


def test_lost_doubled_and_reordered_audio_shows() -> None:
    samples = encode_blocks(range(10))
    block = BLOCK_SAMPLES
    lost = np.concatenate([samples[: 3 * block], samples[4 * block :]])
    doubled = np.concatenate([samples[: 4 * block], samples[3 * block :]])
    swapped = np.concatenate(
        [samples[:block], samples[2 * block : 3 * block], samples[block : 2 * block]]
    )
    assert read(lost) == "w0 w1 w2 w4 w5 w6 w7 w8 w9"
    assert read(doubled) == "w0 w1 w2 w3 w3 w4 w5 w6 w7 w8 w9"
    assert read(swapped) == "w0 w2 w1"


def test_repeated_words_stay_repeated() -> None:
    assert read(encode_blocks([None, 5, 5, 5, None, 5])) == "w5 w5 w5 w5"


def test_detector_hears_speech_in_a_window_that_is_only_partly_speech() -> None:
    detector = ScriptedDetector()
    samples = encode_blocks([None, 3])
    around = samples[BLOCK_SAMPLES - 400 : BLOCK_SAMPLES + 112]
    silence, seam = detector.detect(
        [Chunk("a", np.zeros(512, dtype=np.float32), 0), Chunk("b", around, 0)]
    )
    assert silence < 0.1
    assert seam > 0.9


def test_finder_gives_one_probability_a_window() -> None:
    finder = ScriptedDetector()
    samples = encode_blocks([None, 1, None])
    parts = [samples[:700], samples[700:]]
    found = list(finder.speech_probabilities(parts))
    assert len(found) == -(-len(samples) // finder.window_samples)
    assert max(found) > 0.9
    assert found[0] < 0.1


def test_batch_model_places_segments_on_the_recordings_clock() -> None:
    model = ScriptedBatchModel()
    windows = [
        Window(32_000, encode_blocks([None, 4, 5, None])),
        Window(96_000, encode_blocks([None])),
    ]
    encoded, languages = model.encode(windows), ["en", "en"]
    heard = model.decode(windows, encoded, languages=languages, options=DecodeOptions())
    assert heard[1] == []
    (spoken,) = model.time_words(windows[:1], encoded, heard[0], languages=languages[:1])
    assert [(item.start_ms, item.end_ms, item.text) for item in spoken] == [(2100, 2300, "w4 w5")]


def test_model_refuses_what_the_port_forbids() -> None:
    """The engine is tested against this strictness."""
    model = ScriptedModel()
    model.open("a", language=None, mode_ms=160)
    good = np.zeros(2560, dtype=np.float32)
    model.step([Chunk("a", good, 0)])
    with pytest.raises(StreamError):
        model.step([Chunk("a", good, 9999)])
    with pytest.raises(StreamError):
        model.step([Chunk("a", good[:100], 2560)])
    with pytest.raises(StreamError):
        model.step([Chunk("a", good, 2560), Chunk("a", good, 5120)])


def test_chunks_of_any_mode_are_taken_where_the_model_mixes_them() -> None:
    mixing, strict = ScriptedModel(), ScriptedModel(mixes_chunks=False)
    for model in (mixing, strict):
        model.open("a", language=None, mode_ms=160)
        model.open("b", language=None, mode_ms=1120)
    other = [Chunk(stream, np.zeros(8960, dtype=np.float32), 0) for stream in "ab"]
    assert [item.stream for item in mixing.step(other)] == ["a", "b"]
    with pytest.raises(StreamError):
        strict.step(other[:1])


def test_chunks_of_two_lengths_in_one_step_are_refused() -> None:
    for model in (ScriptedModel(), ScriptedModel(is_gated=True)):
        model.open("a", language=None, mode_ms=160)
        model.open("b", language=None, mode_ms=80)
        with pytest.raises(StreamError):
            model.step(
                [
                    Chunk("a", np.zeros(2560, dtype=np.float32), 0),
                    Chunk("b", np.zeros(1280, dtype=np.float32), 0),
                ]
            )


def test_gated_model_hears_nothing_after_a_short_chunk() -> None:
    model = ScriptedModel(is_gated=True)
    model.open("a", language=None, mode_ms=160)
    model.step([Chunk("a", np.zeros(100, dtype=np.float32), 0)])
    with pytest.raises(StreamError):
        model.step([Chunk("a", np.zeros(2560, dtype=np.float32), 100)])
