"""How an utterance ends within few steps, however long the chunk of its mode. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def plan_tail(
    rest_samples: int, known_samples: int | None, lengths: Sequence[int]
) -> tuple[int, ...]:
    """Lengths of the chunks to feed, in order, until `rest_samples` are heard.

    `known_samples` is the audio that needs no waiting for (None: what is missing is silence).
    `lengths` are those that the model takes, ascending. Each time the shortest chunk that holds the
    rest is taken, else the longest, among those that wait for nothing; where every one would have
    to wait, the shortest.
    """
    tail = []
    while rest_samples > 0:
        at_once = [
            length for length in lengths if known_samples is None or length <= known_samples
        ] or lengths[:1]
        chunk = next((length for length in at_once if length >= rest_samples), at_once[-1])
        tail.append(chunk)
        rest_samples -= chunk
        if known_samples is not None:
            known_samples -= chunk
    return tuple(tail)
