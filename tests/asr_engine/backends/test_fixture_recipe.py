"""The recipe of the small model: its loss is the transducer's, its strings say when words are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.data.nemo.train.loss import transducer_loss
from tests.data.nemo.train.strings import (
    DIGITS,
    LEVEL,
    SAMPLE_RATE,
    Clip,
    Pauses,
    Reciter,
    Spoken,
    TimedWord,
    joined,
)
from tests.data.nemo.train.train import SILENCE, UNJUDGED, frame_targets

BLANK = 5


def plain_loss(logits: torch.Tensor, labels: list[int], frames: int) -> torch.Tensor:
    """One item, node by node, straight from the definition."""
    scores = logits.log_softmax(-1)
    reached: dict[tuple[int, int], torch.Tensor] = {(0, 0): torch.zeros(())}
    for frame in range(frames):
        for label in range(len(labels) + 1):
            ways = []
            if frame:
                ways.append(reached[frame - 1, label] + scores[frame - 1, label, BLANK])
            if label:
                emitted = scores[frame, label - 1, labels[label - 1]]
                ways.append(reached[frame, label - 1] + emitted)
            if ways:
                reached[frame, label] = torch.stack(ways).logsumexp(0)
    return -(reached[frames - 1, len(labels)] + scores[frames - 1, len(labels), BLANK])


@pytest.fixture
def lattice() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits, labels, frame counts and label counts of four unequal items."""
    random = torch.Generator().manual_seed(3)
    logits = torch.randn(4, 7, 5, BLANK + 1, generator=random, dtype=torch.float64)
    labels = torch.randint(0, BLANK, (4, 4), generator=random)
    return logits, labels, torch.tensor([7, 5, 1, 6]), torch.tensor([4, 2, 1, 0])


def test_loss_and_gradient_are_those_of_a_plain_loop(
    lattice: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    logits, labels, frame_counts, label_counts = lattice
    ours, plain = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss = transducer_loss(ours, labels, frame_counts, label_counts, blank=BLANK)
    expected = torch.stack(
        [
            plain_loss(plain[item], labels[item, : label_counts[item]].tolist(), int(frames))
            for item, frames in enumerate(frame_counts)
        ]
    ).mean()
    loss.backward()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-9)
    assert torch.allclose(ours.grad, plain.grad, atol=1e-9)


def test_fast_emit_leaves_the_loss_and_pulls_harder_at_labels(
    lattice: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    logits, labels, frame_counts, label_counts = lattice
    plain, early = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    without = transducer_loss(plain, labels, frame_counts, label_counts, blank=BLANK)
    loss = transducer_loss(early, labels, frame_counts, label_counts, blank=BLANK, fast_emit=0.5)
    without.backward()
    loss.backward()
    assert loss.item() == without.item()
    first = labels[0, 0]
    assert early.grad[0, 0, 0, first] < plain.grad[0, 0, 0, first] < 0
    # An item without labels has nothing to emit early.
    assert torch.equal(early.grad[3], plain.grad[3])


def tone_of(word: str) -> float:
    return 400.0 + 200 * DIGITS.index(word)


def reciter(seed: int, pauses: Pauses | None = None) -> Reciter:
    """A speaker whose every digit is a pure tone of its own."""
    at_s = np.arange(int(0.25 * SAMPLE_RATE)) / SAMPLE_RATE
    clips = [
        Clip(word, (LEVEL * math.sqrt(2) * np.sin(2 * np.pi * tone_of(word) * at_s)).astype("f4"))
        for word in DIGITS
    ]
    return Reciter({"tone": clips}, np.random.default_rng(seed), pauses)


def span(spoken: Spoken, start_s: float, end_s: float) -> np.ndarray:
    return spoken.samples[round(start_s * SAMPLE_RATE) : round(end_s * SAMPLE_RATE)]


@pytest.mark.parametrize("seed", range(8))
def test_every_word_sounds_exactly_where_it_is_said_to(seed: int) -> None:
    spoken = reciter(seed).stretch(12, (0.8, 4.0))
    assert len(spoken.words) > 3
    for word in spoken.words:
        sound = span(spoken, word.start_s, word.end_s)
        loudest_hz = np.abs(np.fft.rfft(sound)).argmax() / (word.end_s - word.start_s)
        assert loudest_hz == pytest.approx(tone_of(word.text), abs=5)


@pytest.mark.parametrize("seed", range(4))
def test_between_words_there_is_only_noise(seed: int) -> None:
    spoken = reciter(seed).phrase(6)
    quietest = min(np.std(span(spoken, word.start_s, word.end_s)) for word in spoken.words)
    for before, after in zip(spoken.words, spoken.words[1:], strict=False):
        assert np.std(span(spoken, before.end_s, after.start_s)) < 0.6 * quietest


def test_a_phrase_keeps_to_its_length_and_pauses() -> None:
    pauses = Pauses(before_s=(0.1, 0.1), between_s=(0.2, 0.2), after_s=(0.4, 0.4))
    spoken = reciter(1, pauses).phrase(3.0)
    assert 2.5 < spoken.duration_s <= 3.0
    assert spoken.words[0].start_s == pytest.approx(0.1)
    assert spoken.duration_s - spoken.words[-1].end_s == pytest.approx(0.4)
    gaps_s = [b.start_s - a.end_s for a, b in zip(spoken.words, spoken.words[1:], strict=False)]
    assert gaps_s == pytest.approx([0.2] * len(gaps_s))


def test_a_phrase_says_one_word_where_none_fits() -> None:
    assert len(reciter(2).phrase(0.1).words) == 1


def test_a_seed_gives_the_same_strings() -> None:
    first, again, other = (reciter(seed).stretch(6, (0.8, 3.0)) for seed in (4, 4, 5))
    assert np.array_equal(first.samples, again.samples)
    assert first.words == again.words
    assert first.words != other.words


def test_a_silent_end_is_digital_silence_and_moves_no_word() -> None:
    voice = reciter(6)
    spoken = voice.phrase(2.0)
    longer = voice.silent_end(spoken)
    assert longer.words == spoken.words
    assert len(longer.samples) > len(spoken.samples)
    assert not longer.samples[len(spoken.samples) :].any()


def test_joined_parts_keep_their_words_in_time() -> None:
    part = Spoken(np.zeros(SAMPLE_RATE, np.float32), (TimedWord("two", 0.25, 0.5),))
    whole = joined([part, part])
    assert whole.text == "two two"
    assert whole.words[1] == TimedWord("two", 1.25, 1.5)


def test_the_alignment_head_is_asked_for_words_once_they_are_mostly_said() -> None:
    words = (TimedWord("seven", 0.8, 1.2),)
    targets = frame_targets(Spoken(np.zeros(2 * SAMPLE_RATE, np.float32), words))
    heard_ms = [80 * (index + 1) for index in range(len(targets))]
    asked = dict(zip(heard_ms, targets.tolist(), strict=True))
    assert [ms for ms, target in asked.items() if target == 7] == [1040, 1120, 1200, 1280]
    assert {target for ms, target in asked.items() if ms < 800} == {SILENCE}
    assert asked[880] == asked[960] == asked[1360] == UNJUDGED
    assert asked[1440] == SILENCE
