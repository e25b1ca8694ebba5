"""The transducer loss for a CPU: all alignments of a batch at once, one diagonal at a time.

A. Graves, "Sequence Transduction with Recurrent Neural Networks" (2012), equations 16 to 20. A node
(frame, label) depends only on nodes whose frame + label is one less, so a diagonal of the lattice
is one vector operation over the whole batch. FastEmit (J. Yu and others, 2021) scales the gradient
of the emitting arcs, which makes the model emit earlier.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

IMPOSSIBLE = -1e30


def transducer_loss(
    logits: Tensor,
    labels: Tensor,
    frame_counts: Tensor,
    label_counts: Tensor,
    *,
    blank: int,
    fast_emit: float = 0.0,
) -> Tensor:
    """Mean over the batch of the negative log-likelihood of the labels.

    logits: float [batch, frames, labels + 1, vocabulary], not normalised.
    labels: int64 [batch, labels], padded with anything below the vocabulary's size.
    frame_counts, label_counts: int64 [batch], at least one frame and no label.
    """
    log_probabilities = logits.log_softmax(-1)
    blanks = log_probabilities[..., blank]
    wanted = labels[:, None, :, None].expand(-1, logits.shape[1], -1, 1)
    emits = log_probabilities[:, :, :-1].gather(3, wanted).squeeze(3)
    likelihoods: Tensor = _Lattice.apply(blanks, emits, frame_counts, label_counts, fast_emit)
    return -likelihoods.mean()


def _diagonals(arcs: Tensor, count: int) -> Tensor:
    """[batch, frames, labels] to [batch, count, labels], where row d holds frame + label = d."""
    frames, labels = arcs.shape[1:]
    frame = torch.arange(count)[:, None] - torch.arange(labels)
    rows = arcs.gather(1, frame.clamp(0, frames - 1).expand(len(arcs), -1, -1))
    return rows.masked_fill((frame < 0) | (frame >= frames), IMPOSSIBLE)


def _frames(rows: Tensor, frames: int) -> Tensor:
    """The inverse of `_diagonals`."""
    labels = rows.shape[2]
    diagonal = torch.arange(frames)[:, None] + torch.arange(labels)
    return rows.gather(1, diagonal.expand(len(rows), -1, -1))


class _Lattice(torch.autograd.Function):
    """Log-likelihood of each item from its blank and emit arcs, with the exact gradient."""

    @staticmethod
    def forward(
        context: Any,
        blanks: Tensor,
        emits: Tensor,
        frame_counts: Tensor,
        label_counts: Tensor,
        fast_emit: float,
    ) -> Tensor:
        batch, frames, nodes = blanks.shape
        count = frames + nodes - 1
        item = torch.arange(batch)
        last = frame_counts - 1 + label_counts
        blank_rows = _diagonals(blanks, count)
        emit_rows = functional.pad(_diagonals(emits, count), (0, 1), value=IMPOSSIBLE)

        forward_rows = blanks.new_full((batch, count, nodes), IMPOSSIBLE)
        reached = blanks.new_full((batch, nodes), IMPOSSIBLE)
        reached[:, 0] = 0
        forward_rows[:, 0] = reached
        for diagonal in range(1, count):
            stayed = reached + blank_rows[:, diagonal - 1]
            emitted = (reached + emit_rows[:, diagonal - 1])[:, :-1]
            reached = torch.logaddexp(stayed, functional.pad(emitted, (1, 0), value=IMPOSSIBLE))
            forward_rows[:, diagonal] = reached
        end = blank_rows[item, last, label_counts]
        likelihoods = forward_rows[item, last, label_counts] + end

        backward_rows = blanks.new_full((batch, count + 1, nodes), IMPOSSIBLE)
        ahead = blanks.new_full((batch, nodes), IMPOSSIBLE)
        for diagonal in range(count - 1, -1, -1):
            stayed = ahead + blank_rows[:, diagonal]
            emitted = functional.pad(ahead[:, 1:], (0, 1), value=IMPOSSIBLE)
            ahead = torch.logaddexp(stayed, emitted + emit_rows[:, diagonal])
            ends_here = item[last == diagonal]
            ahead[ends_here, label_counts[ends_here]] = end[ends_here]
            backward_rows[:, diagonal] = ahead

        arrived = forward_rows - likelihoods[:, None, None]
        after_blank = backward_rows[:, 1:].clone()
        after_blank[item, last, label_counts] = 0
        after_emit = functional.pad(backward_rows[:, 1:, 1:], (0, 1), value=IMPOSSIBLE)
        context.save_for_backward(
            _frames((arrived + blank_rows + after_blank).exp(), frames),
            _frames((arrived + emit_rows + after_emit).exp(), frames)[:, :, :-1],
        )
        context.emit_scale = 1 + fast_emit
        return likelihoods

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        blank_shares, emit_shares = context.saved_tensors
        scale = gradients[0][:, None, None]
        return scale * blank_shares, scale * emit_shares * context.emit_scale, None, None, None
