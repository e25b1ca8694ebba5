"""Our NeMo backend says what NeMo's own pipeline says; and what is wrong with that pipeline.

The faults are NeMo 3.0.0's. A test of one fails when NeMo has mended it: then what is said beside
the test can go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from asr_engine.audio import FloatSamples
from asr_engine.backends.cache_aware.nemo import CTC, RNNT, NemoNetwork
from asr_engine.backends.cache_aware.words import WordBuilder
from asr_engine.results import join_words
from tests.fakes.digits import DIGITS_MODEL, digits, digits_model, padded
from tests.fakes.nemo_pipeline import (
    build_pipeline,
    frames_of,
    give_back_lost_mel_frame,
    transcribe,
)

FRAME = 1280
SILENCE = 4800
RIGHT_CONTEXTS = [13, 6, 1, 0]


def recordings(chunk: int) -> list[FloatSamples]:
    items = [*digits("seen"), *digits("heldout")]
    return [padded(item.samples(), chunk, silence=SILENCE) for item in items]


def our_texts(decoder: str, audio: list[FloatSamples], chunk: int) -> list[str]:
    """What our network says of each, all in one batch, from their first chunk to their last."""
    network = NemoNetwork(digits_model(), decoder=decoder, slots=len(audio), batch_limit=len(audio))
    builders = [WordBuilder() for _ in audio]
    for slot in range(len(audio)):
        network.reset(slot, language=None)
    for start in range(0, max(map(len, audio)), chunk):
        live = [slot for slot, samples in enumerate(audio) if start < len(samples)]
        chunks = np.stack([audio[slot][start : start + chunk] for slot in live])
        for slot, tokens in zip(live, network.step(live, chunks), strict=True):
            for token in tokens:
                builders[slot].add(network.traits.pieces[token.id], 0, 1, None)
    return [join_words(builder.words()) for builder in builders]


@pytest.mark.parametrize("right_context", RIGHT_CONTEXTS)
@pytest.mark.parametrize("decoder", [RNNT, CTC])
def test_text_is_that_of_nemos_pipeline(decoder: str, right_context: int) -> None:
    chunk = (right_context + 1) * FRAME
    audio = recordings(chunk)
    pipeline = give_back_lost_mel_frame(
        build_pipeline(
            DIGITS_MODEL,
            decoder=decoder,
            att_context_size=[70, right_context],
            slots=len(audio),
        )
    )
    theirs = transcribe(pipeline, dict(enumerate(audio)))
    ours = our_texts(decoder, audio, chunk)
    assert ours == [theirs[index] for index in range(len(audio))]
    assert all(ours)


# The faults of NeMo 3.0.0's pipeline --------------------------------------------------------------


@pytest.fixture
def pipeline() -> Any:
    return build_pipeline(DIGITS_MODEL, decoder=RNNT, att_context_size=[70, 1], slots=2)


def begin(pipeline: Any, stream: int, frames: int = 1) -> list[Any]:
    """Feed the first chunks of a recording; returns the rest of its requests."""
    requests = frames_of(stream, padded(digits("seen")[0].samples(), 2 * FRAME), 2 * FRAME)
    for request in requests[:frames]:
        pipeline.transcribe_step([request])
    return requests[frames:]


def test_fault_the_shortest_mode_loses_a_mel_frame() -> None:
    """Seconds divided in floating point. Mended: `give_back_lost_mel_frame` can go; our front end
    counts frames and never had it."""
    pipeline = build_pipeline(DIGITS_MODEL, decoder=CTC, att_context_size=[70, 0], slots=12)
    true_length = pipeline.pre_encode_cache_size + pipeline.model_chunk_size
    assert pipeline.bufferer.feature_buffer_len == true_length - 1
    audio = recordings(FRAME)
    theirs = transcribe(pipeline, dict(enumerate(audio)))
    assert our_texts(CTC, audio, FRAME) != [theirs[index] for index in range(len(audio))]


def test_fault_an_abandoned_stream_keeps_its_slots(pipeline: Any) -> None:
    """Mended: nothing of ours depends on it; our slots are numbers that we count ourselves."""
    for stream in range(2):
        begin(pipeline, stream)
        pipeline.delete_state(stream)
    pipeline.close_session()
    with pytest.raises(RuntimeError, match="No free slots"):
        begin(pipeline, 2)


def test_fault_a_step_that_fails_has_changed_its_streams(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The features of a chunk are in the buffer although it was never heard."""
    rest = begin(pipeline, 0)
    before = pipeline.bufferer.feature_buffer.clone()

    def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(pipeline.asr_model, "stream_step", fail)
    with pytest.raises(RuntimeError):
        pipeline.transcribe_step([rest[0]])
    assert not before.equal(pipeline.bufferer.feature_buffer)


def test_fault_misuse_is_accepted_in_silence(pipeline: Any) -> None:
    """A short chunk in mid-stream, and one stream twice in a step."""
    rest = begin(pipeline, 0)
    pipeline.transcribe_step([replace(rest[0], samples=rest[0].samples[:777])])
    pipeline.transcribe_step([rest[1], rest[2]])


def test_fault_a_hypothesis_keeps_every_token_of_its_stream(pipeline: Any) -> None:
    """So that steps grow longer for the life of a stream."""
    rest = begin(pipeline, 0)
    lengths = []
    for request in rest[:-1]:
        pipeline.transcribe_step([request])
        lengths.append(len(pipeline.get_state(0).get_previous_hypothesis().y_sequence))
    assert lengths == sorted(lengths)
    assert lengths[-1] >= 8
