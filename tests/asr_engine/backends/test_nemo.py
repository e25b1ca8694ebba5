"""NeMo models in slots: what a stream carries from chunk to chunk, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from asr_engine.audio import FloatSamples
from asr_engine.backends.cache_aware import nemo
from asr_engine.backends.cache_aware.nemo import CTC, RNNT, NemoNetwork
from asr_engine.backends.cache_aware.network import Token
from asr_engine.errors import ModelError, StreamError
from tests.fakes.digits import digits, digits_model, padded

FRAME = 1280


@pytest.fixture(scope="module", params=[RNNT, CTC])
def network(request: pytest.FixtureRequest) -> NemoNetwork:
    return NemoNetwork(digits_model(), decoder=request.param, slots=4, batch_limit=4)


def heard(
    network: NemoNetwork, slot: int, audio: FloatSamples, chunks: list[int]
) -> list[tuple[int, int]]:
    """Tokens and their frames of `audio` cut by `chunks` (frames, repeated until its end)."""
    found, position, index = [], 0, 0
    while position < len(audio):
        frames = chunks[index % len(chunks)]
        index += 1
        chunk = np.zeros((1, frames * FRAME), np.float32)
        part = audio[position : position + chunk.shape[1]]
        chunk[0, : len(part)] = part
        first = position // FRAME
        found += [(token.id, first + token.frame) for token in network.step([slot], chunk)[0]]
        position += chunk.shape[1]
    return found


def snapshot(network: NemoNetwork) -> list[torch.Tensor]:
    """Every tensor in which the network keeps something for its slots."""
    front_end, decoder = network._front_end, network._decoder
    tensors = [*network._caches, front_end._samples, front_end._mel, network._prompts]
    if hasattr(decoder, "_last"):
        tensors.append(decoder._last)
    else:
        state = decoder._state
        tensors += [*state.predictor_states, state.predictor_outputs, state.labels]
    return [tensor.clone() for tensor in tensors]


def test_the_digits_model_offers_four_modes(network: NemoNetwork) -> None:
    assert network.traits.chunk_frames == {80: 1, 160: 2, 560: 7, 1120: 14}
    assert network.traits.frame_samples == FRAME


def test_tokens_carry_frames_of_their_chunk_and_confidences(network: NemoNetwork) -> None:
    network.reset(0, language=None)
    audio = padded(digits("seen")[0].samples(), 14 * FRAME)
    tokens: list[Token] = []
    for start in range(0, len(audio), 14 * FRAME):
        tokens += network.step([0], audio[None, start : start + 14 * FRAME])[0]
    assert len(tokens) > 8
    assert all(0 <= token.frame < 14 for token in tokens)
    assert all(token.confidence is not None and 0 <= token.confidence <= 1 for token in tokens)
    assert len({token.confidence for token in tokens}) > 1


def test_a_reset_slot_remembers_nothing(network: NemoNetwork) -> None:
    first, second = (item.samples() for item in digits("seen")[:2])
    network.reset(0, language=None)
    fresh = heard(network, 0, second, [2])
    heard(network, 0, first, [2])
    network.reset(0, language=None)
    assert heard(network, 0, second, [2]) == fresh


def test_slots_do_not_hear_each_other(network: NemoNetwork) -> None:
    """In any order of slots, and beside streams at other positions."""
    audio = [padded(item.samples(), 7 * FRAME) for item in digits("seen")[:3]]
    alone = []
    for samples in audio:
        network.reset(3, language=None)
        alone.append(heard(network, 3, samples, [7]))
    slots = [2, 0, 3]
    for slot in slots:
        network.reset(slot, language=None)
    together: dict[int, list[tuple[int, int]]] = {slot: [] for slot in slots}
    for step in range(max(map(len, audio)) // (7 * FRAME) + 3):
        live = [
            (slot, samples[start : start + 7 * FRAME], start // FRAME)
            for delay, (slot, samples) in enumerate(zip(slots, audio, strict=True))
            if 0 <= (start := (step - delay) * 7 * FRAME) < len(samples)
        ]
        if step % 2:
            live.reverse()
        if live:
            emitted = network.step([slot for slot, _, _ in live], np.stack([x for _, x, _ in live]))
            for (slot, _, first), tokens in zip(live, emitted, strict=True):
                together[slot] += [(token.id, first + token.frame) for token in tokens]
    assert [together[slot] for slot in slots] == alone


def test_chunks_of_all_lengths_in_one_stream_lose_and_double_nothing(network: NemoNetwork) -> None:
    """A longer chunk sees more of what follows, so that a word may be heard differently where
    the lengths differ, but their number and places hold."""
    item = digits("seen")[0]
    network.reset(0, language=None)
    whole = heard(network, 0, item.samples(), [2])
    network.reset(0, language=None)
    mixed = heard(network, 0, item.samples(), [2, 1, 7, 1, 2, 14, 7])
    words = {index for index, piece in enumerate(network.traits.pieces) if piece.startswith("▁")}
    assert sum(token in words for token, _ in mixed) == pytest.approx(
        sum(token in words for token, _ in whole), abs=1
    )
    frames = [frame for _, frame in mixed]
    assert frames == sorted(frames)


@pytest.mark.parametrize(
    ("slots", "shape"),
    [([0], (1, FRAME - 1)), ([0], (1, 3 * FRAME)), ([0, 0], (2, FRAME)), ([0, 1], (1, FRAME))],
)
def test_misuse_is_refused_and_changes_nothing(
    network: NemoNetwork, slots: list[int], shape: tuple[int, int]
) -> None:
    before = snapshot(network)
    with pytest.raises(StreamError):
        network.step(slots, np.zeros(shape, np.float32))
    assert all(map(torch.equal, before, snapshot(network)))


def test_a_step_that_fails_changes_no_slot(
    network: NemoNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NeMo's pipeline leaves caches half updated; here a stream could go on after an error."""
    network.reset(1, language=None)
    heard(network, 1, digits("seen")[0].samples()[: 8 * FRAME], [2])
    before = snapshot(network)

    def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(network._decoder, "decode", fail)
    with pytest.raises(RuntimeError):
        network.step([1], np.ones((1, 2 * FRAME), np.float32))
    assert all(map(torch.equal, before, snapshot(network)))


def test_what_a_stream_carries_does_not_grow(network: NemoNetwork) -> None:
    """The hypothesis of NeMo's pipeline does, for the life of a stream."""
    network.reset(0, language=None)
    shapes = [tensor.shape for tensor in snapshot(network)]
    heard(network, 0, np.tile(digits("seen")[0].samples(), 4), [14])
    assert [tensor.shape for tensor in snapshot(network)] == shapes


def test_a_model_that_cannot_stream_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits_model().encoder, "att_context_style", "regular")
    with pytest.raises(ModelError, match="cannot stream"):
        NemoNetwork(digits_model(), slots=1, batch_limit=1)


def test_modes_must_share_one_past(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits_model().encoder, "att_context_size_all", [[70, 13], [56, 1]])
    with pytest.raises(ModelError, match="different lengths"):
        NemoNetwork(digits_model(), slots=1, batch_limit=1)


def test_the_decoder_that_a_model_lacks_is_refused_or_replaced() -> None:
    assert nemo._chosen_decoder(SimpleNamespace(joint=1, ctc_decoder=1), CTC) == CTC
    assert nemo._chosen_decoder(SimpleNamespace(decoder=1), RNNT) == CTC
    with pytest.raises(ModelError, match="no CTC decoder"):
        nemo._chosen_decoder(SimpleNamespace(joint=1, decoder=1), CTC)


def test_a_slot_takes_the_memory_that_is_said() -> None:
    network = NemoNetwork(digits_model(), slots=3, batch_limit=3)
    held = sum(tensor.numel() * tensor.element_size() for tensor in network._caches)
    assert held == 3 * nemo.memory_of_slot(digits_model(), "float32")
