"""Trains the small model on strings of spoken digits, from nothing, on one core.

    python -m tests.data.nemo.train.train RECORDINGS_FOLDER OUTPUT.nemo [--from START.nemo]

RECORDINGS_FOLDER holds the Free Spoken Digit Dataset's WAV files. Three phases lengthen the strings
step by step: words, then phrases, then stretches of up to half a minute with long pauses, without
which the transducer loses words on long streams. `--phase` runs one of them; `--minutes` caps each,
and only a run that no cap ended can be repeated to the same weights.
"""

from __future__ import annotations

import argparse
import copy
import logging
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tests.data.nemo.train.loss import transducer_loss
from tests.data.nemo.train.model import (
    FAST_EMIT,
    FRAME_S,
    MELS,
    WIDTH,
    make_model,
    make_tokenizer,
    restore,
    save,
)
from tests.data.nemo.train.strings import (
    DIGITS,
    SAMPLE_RATE,
    Reciter,
    Spoken,
    load_voices,
)

logger = logging.getLogger(__name__)

SEED = 20
SILENCE = len(DIGITS)
UNJUDGED = -100
REPORT_STEPS = 50
SAVE_STEPS = 250
AVERAGE_DECAY = 0.998


@dataclass(frozen=True, slots=True)
class Phase:
    """One stage: what is said, for how long, how fast the weights move."""

    steps: int
    # Lengths of a string in seconds and the share of the batches that have them.
    lengths_s: tuple[tuple[float, float, float], ...]
    learning_rate: float
    # The alignment head's weight at the start and once a half of the steps are done.
    alignment: tuple[float, float]
    batch_s: float = 45.0


PHASES = (
    Phase(1200, ((0.8, 2.2, 0.6), (2.2, 4.0, 0.4)), 2.5e-3, (20, 1)),
    Phase(2800, ((0.8, 2.0, 0.2), (2.0, 5.0, 0.4), (5.0, 9.0, 0.4)), 2e-3, (2, 1)),
    Phase(3000, ((0.8, 4.0, 0.2), (4.0, 9.0, 0.3), (10.0, 32.0, 0.5)), 1.5e-3, (1, 0.5)),
)
LONG_S = 9.0


@dataclass(frozen=True, slots=True)
class Batch:
    mels: Tensor  # float32 [batch, mels, time]
    mel_counts: Tensor
    labels: Tensor  # int64 [batch, labels]
    label_counts: Tensor
    frames: Tensor  # int64 [batch, frames]: digit, SILENCE or UNJUDGED


class Lessons:
    """Endless batches for a phase, each of strings of about one length."""

    def __init__(
        self, model: Any, reciter: Reciter, phase: Phase, rng: np.random.Generator
    ) -> None:
        self._featurizer = copy.deepcopy(model.preprocessor).eval()
        self._tokenizer = model.tokenizer
        self._reciter = reciter
        self._phase = phase
        self._rng = rng

    def __iter__(self) -> Iterator[Batch]:
        lengths = self._phase.lengths_s
        shares = [share for _, _, share in lengths]
        while True:
            shortest, longest, _ = lengths[self._rng.choice(len(lengths), p=shares)]
            length_s = self._rng.uniform(shortest, longest)
            size = max(2, min(32, round(self._phase.batch_s / length_s)))
            yield self._batch([self._string(length_s) for _ in range(size)])

    def _string(self, length_s: float) -> Spoken:
        if length_s > LONG_S and self._rng.random() < 0.8:
            spoken = self._reciter.stretch(length_s, (0.8, 8.0))
        else:
            spoken = self._reciter.phrase(length_s)
        return self._reciter.silent_end(spoken) if self._rng.random() < 0.3 else spoken

    def _batch(self, strings: Sequence[Spoken]) -> Batch:
        counts = torch.tensor([len(string.samples) for string in strings])
        samples = torch.zeros(len(strings), int(counts.max()))
        for row, string in zip(samples, strings, strict=True):
            row[: len(string.samples)] = torch.from_numpy(string.samples)
        with torch.no_grad():
            mels, mel_counts = self._featurizer(input_signal=samples, length=counts)
        mels = mels + self._microphones(len(strings))
        labels = [torch.tensor(self._tokenizer.text_to_ids(string.text)) for string in strings]
        frames = [frame_targets(string) for string in strings]
        return Batch(
            mels,
            mel_counts,
            torch.nn.utils.rnn.pad_sequence(labels, batch_first=True),
            torch.tensor([len(row) for row in labels]),
            torch.nn.utils.rnn.pad_sequence(frames, batch_first=True, padding_value=UNJUDGED),
        )

    def _microphones(self, count: int) -> Tensor:
        """A smooth random frequency response for every string: [count, mels, 1]."""
        knots = torch.from_numpy(self._rng.normal(0, 0.7, (count, 1, 6)).astype(np.float32))
        return functional.interpolate(knots, MELS, mode="linear", align_corners=True).mT


def frame_targets(spoken: Spoken) -> Tensor:
    """What the alignment head is to say at every frame: int64 [frames].

    A word is due from just past its middle to a frame after its end. The frames around words are
    left unjudged, those well outside are silence.
    """
    count = len(spoken.samples) // round(FRAME_S * SAMPLE_RATE) + 1
    targets = torch.full((count,), UNJUDGED)
    heard_s = (torch.arange(count) + 1) * FRAME_S
    silent = torch.ones(count, dtype=torch.bool)
    for word in spoken.words:
        due_s = word.start_s + 0.55 * (word.end_s - word.start_s)
        targets[(heard_s >= due_s) & (heard_s <= word.end_s + FRAME_S)] = DIGITS.index(word.text)
        silent &= (heard_s < word.start_s) | (heard_s > word.end_s + 2 * FRAME_S)
    targets[silent] = SILENCE
    return targets


def losses(model: Any, alignment: torch.nn.Module, batch: Batch) -> dict[str, Tensor]:
    """The transducer's, the CTC head's and the alignment head's loss on a batch."""
    encoded, frame_counts = model.forward(
        processed_signal=batch.mels, processed_signal_length=batch.mel_counts
    )
    predicted, _, _ = model.decoder(targets=batch.labels, target_length=batch.label_counts)
    logits = model.joint(encoder_outputs=encoded, decoder_outputs=predicted)
    aligned = alignment(encoded.mT)
    frames = min(aligned.shape[1], batch.frames.shape[1])
    return {
        "rnnt": transducer_loss(
            logits,
            batch.labels,
            frame_counts,
            batch.label_counts,
            blank=model.decoder.blank_idx,
            fast_emit=FAST_EMIT,
        ),
        "ctc": model.ctc_loss(
            log_probs=model.ctc_decoder(encoder_output=encoded),
            targets=batch.labels,
            input_lengths=frame_counts,
            target_lengths=batch.label_counts,
        ),
        "alignment": functional.cross_entropy(
            aligned[:, :frames].flatten(0, 1),
            batch.frames[:, :frames].flatten(),
            ignore_index=UNJUDGED,
        ),
    }


class Average:
    """Running mean of the weights: what is saved, steadier than the last step's."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._parameters = list(model.parameters())
        self._mean = [parameter.detach().clone() for parameter in self._parameters]
        self._steps = 0

    def update(self) -> None:
        self._steps += 1
        decay = min(AVERAGE_DECAY, self._steps / (self._steps + 10))
        with torch.no_grad():
            torch._foreach_lerp_(self._mean, self._parameters, 1 - decay)

    def save(self, path: Path) -> None:
        current = [parameter.data for parameter in self._parameters]
        for parameter, mean in zip(self._parameters, self._mean, strict=True):
            parameter.data = mean
        save(self._model, path)
        for parameter, data in zip(self._parameters, current, strict=True):
            parameter.data = data

    def adopt(self) -> None:
        with torch.no_grad():
            torch._foreach_copy_(self._parameters, self._mean)


def run_phase(
    model: Any,
    alignment: torch.nn.Module,
    phase: Phase,
    lessons: Iterator[Batch],
    output: Path,
    minutes: float,
) -> None:
    """Train for a phase and leave its averaged weights in the model and in the file."""
    weights = [*model.parameters(), *alignment.parameters()]
    optimiser = torch.optim.AdamW(weights, betas=(0.9, 0.98), weight_decay=1e-3)
    average = Average(model)
    began = time.monotonic()
    first, last = phase.alignment
    for step in range(phase.steps):
        done = max(step / phase.steps, (time.monotonic() - began) / 60 / minutes)
        if done >= 1:
            break
        rate = phase.learning_rate * min(1, (step + 1) / 80) * (1 + math.cos(math.pi * done)) / 2
        for group in optimiser.param_groups:
            group["lr"] = rate + 2e-5
        batch = next(lessons)
        parts = losses(model, alignment, batch)
        weight = max(last, first + (last - first) * 2 * done)
        loss = 0.6 * parts["rnnt"] + 0.4 * parts["ctc"]
        words_scale = 1 / max(1.0, float(batch.label_counts.float().mean()) / 8)
        (loss * words_scale + weight * parts["alignment"]).backward()
        norm = torch.nn.utils.clip_grad_norm_(weights, 10.0)
        if torch.isfinite(norm):
            optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        average.update()
        if step % REPORT_STEPS == 0:
            logger.info(
                "step %d, %.0f s, strings of %.1f s: %s, gradient %.1f",
                step,
                time.monotonic() - began,
                batch.mels.shape[2] / 100,
                ", ".join(f"{name} {float(part):.2f}" for name, part in parts.items()),
                norm,
            )
        if step % SAVE_STEPS == SAVE_STEPS - 1:
            average.save(output)
    average.adopt()
    average.save(output)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the small model on spoken digits.")
    parser.add_argument("recordings", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--from", dest="start", type=Path, help="weights to start from")
    parser.add_argument("--phase", type=int, choices=range(1, len(PHASES) + 1), help="only this")
    parser.add_argument("--minutes", type=float, default=math.inf, help="at most, for each phase")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    voices = load_voices(options.recordings)
    # NeMo reads the tokenizer's files once more whenever it saves.
    with tempfile.TemporaryDirectory() as folder:
        if options.start:
            model = restore(options.start)
        else:
            make_tokenizer(Path(folder) / "tokenizer", SEED)
            model = make_model(Path(folder) / "tokenizer")
        alignment = torch.nn.Linear(WIDTH, len(DIGITS) + 1)
        model.train()
        for number, phase in enumerate(PHASES, start=1):
            if options.phase in (None, number):
                logger.info("phase %d", number)
                rng = np.random.default_rng([SEED, number])
                lessons = iter(Lessons(model, Reciter(voices, rng), phase, rng))
                run_phase(model, alignment, phase, lessons, options.output, options.minutes)


if __name__ == "__main__":
    main()
