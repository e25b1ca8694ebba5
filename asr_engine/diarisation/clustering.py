"""Voices to speakers: agglomerative clustering of voiceprints by cosine distance.

Average linkage, with a surcharge between two voices of one window: they were told apart by ear
there, which is mostly right. Voiceprints of little speech take no part; they join what they are
nearest to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.diarisation.port import Voice

MAX_DISTANCE: Final = 0.55
"""Voices farther apart than this are two people, unless their number is given."""
SAME_DISTANCE: Final = 0.4
"""Voices nearer than this are one person, whatever number is given."""
SURCHARGE: Final = 0.4
"""Added to the distance between two voices of one window."""
TRUSTED_MS: Final = 1000
"""Speech without others from which a voiceprint is good enough to found a speaker."""
MAX_CLUSTERED: Final = 1500
"""Voices that are clustered at most, those with most speech: the matrix is the square of this."""


def speakers_of(voices: Sequence[Voice], *, speakers: int | None) -> NDArray[np.intp]:
    """A number from 0 for each voice: the speaker it belongs to.

    `speakers` is how many there are; None counts them. Fewer are found where the recording does
    not hold so many voices.
    """
    if not voices:
        return np.zeros(0, np.intp)
    prints = np.stack([voice.voiceprint for voice in voices])
    windows = np.array([voice.window for voice in voices])
    alone_ms = np.array([voice.alone_ms for voice in voices])
    founders = _founders(alone_ms, at_least=min(speakers or 1, len(voices)))
    groups = _clustered(prints[founders], windows[founders], speakers)
    weights = np.maximum(alone_ms[founders], 1)[:, None]
    centres = np.stack(
        [
            (prints[founders] * weights)[groups == group].sum(axis=0)
            for group in range(int(groups.max()) + 1)
        ]
    )
    centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-9)
    found = np.full(len(voices), -1, np.intp)
    found[founders] = groups
    _join_nearest(found, prints @ centres.T, windows)
    return found


def _founders(alone_ms: NDArray[np.int_], *, at_least: int) -> NDArray[np.intp]:
    """Indices of the voices that are clustered, in order."""
    by_length = np.argsort(-alone_ms, kind="stable")[:MAX_CLUSTERED]
    trusted = int((alone_ms[by_length] >= TRUSTED_MS).sum())
    return np.sort(by_length[: max(trusted, at_least)])


def _clustered(
    prints: NDArray[np.float32], windows: NDArray[np.int_], speakers: int | None
) -> NDArray[np.intp]:
    """Merge the nearest two groups until all are too far apart; a number for each voiceprint."""
    count = len(prints)
    distances = 1 - prints @ prints.T
    distances += SURCHARGE * (windows[:, None] == windows[None])
    np.fill_diagonal(distances, np.inf)
    sizes = np.ones(count)
    groups = np.arange(count)
    for left in range(count, 1, -1):
        into, other = sorted(divmod(int(distances.argmin()), count))
        nearest = float(distances[into, other])
        is_enough = nearest > MAX_DISTANCE if speakers is None else left <= speakers
        if is_enough and nearest > SAME_DISTANCE:
            break
        total = sizes[into] + sizes[other]
        merged = (distances[into] * sizes[into] + distances[other] * sizes[other]) / total
        distances[into] = distances[:, into] = merged
        distances[into, into] = np.inf
        distances[other] = distances[:, other] = np.inf
        sizes[into] = total
        groups[groups == other] = into
    numbers: NDArray[np.intp] = np.unique(groups, return_inverse=True)[1]
    return numbers


def _join_nearest(
    found: NDArray[np.intp], likeness: NDArray[np.float32], windows: NDArray[np.int_]
) -> None:
    """Give every voice without a speaker the one it is most like.

    Not one that another voice of its window has, as long as there are others.
    """
    for voice in np.flatnonzero(found < 0):
        taken = found[windows == windows[voice]]
        choice = likeness[voice].copy()
        choice[taken[taken >= 0]] -= 2
        found[voice] = int(choice.argmax())
