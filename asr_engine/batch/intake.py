"""All that is found out about a recording before it is transcribed, and what the page plays of it.

`take_in_safely` does it in one child process with limits, since the recording's bytes come from
strangers: survey of the tracks, full decode of each that may be transcribed, waveform and player.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from asr_engine.batch import confined
from asr_engine.batch.channels import has_choice, survey
from asr_engine.batch.player import BIT_RATE, PlayerFile, make_player_file
from asr_engine.batch.probe import AudioProbe, probe
from asr_engine.errors import AudioError, ModelError
from asr_engine.tracks import TrackSurvey, plan_of

SPARE_BYTES: Final = 16 << 20
"""What a container adds to the sound."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What a recording is, as it is transcribed and played; `tracks` as `survey` found them."""

    probe: AudioProbe
    player: PlayerFile
    tracks: tuple[TrackSurvey, ...]


def take_in(source: Path, *, max_duration_s: float, track: int | None = None) -> Intake:
    """Look at the track that `plan_of` takes, `track` being the chosen one, and make its player
    beside `source`, in this process. A track that does not decode is not among the `tracks`.

    Raises AudioError and its children, OSError where the disk is full.
    """
    tracks = _survey(source)
    planned = plan_of(tracks, track).track
    found = probe(source, max_duration_s=max_duration_s, track=planned)
    sound = [
        other
        for other in tracks
        if other.index == planned or _decodes(source, other.index, max_duration_s)
    ]
    one_of_several = planned if found.audio_tracks > 1 else None
    player = make_player_file(source, source.parent, track=one_of_several)
    return Intake(found, player, tuple(sound))


def take_in_safely(source: Path, *, max_duration_s: float, track: int | None = None) -> Intake:
    """`take_in` in a child process with limits. A child that dies means BrokenAudioError."""
    with source.open("rb"):
        pass  # a missing file is the caller's fault, not the recording's
    chosen = "" if track is None else str(track)
    found = confined.run(__name__, str(source), str(max_duration_s), chosen)
    return Intake(
        AudioProbe(**found["probe"]),
        PlayerFile(**found["player"]),
        tuple(TrackSurvey.from_json(track) for track in found["tracks"]),
    )


def _survey(source: Path) -> list[TrackSurvey]:
    if not has_choice(source):
        return []
    # On use: most recordings have one track with one channel, and somebody waits for the check.
    from asr_engine import registry
    from asr_engine.config import engine_settings

    try:
        finder = registry.speech_finder(engine_settings())
    except ModelError:  # said by a system check; the default track is as good as any until then
        return []
    return survey(source, finder=finder)


def _decodes(source: Path, track: int, max_duration_s: float) -> bool:
    """Whether a later job may trust the track: it decodes it without limits."""
    try:
        probe(source, max_duration_s=max_duration_s, track=track)
    except AudioError:
        return False
    return True


def main() -> None:
    source, max_duration_s, chosen = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    encoded_bytes = int(max_duration_s * BIT_RATE / 8)
    confined.answer(
        lambda: asdict(
            take_in(source, max_duration_s=max_duration_s, track=int(chosen) if chosen else None)
        ),
        written_bytes=max(encoded_bytes, source.stat().st_size) + SPARE_BYTES,
    )


if __name__ == "__main__":
    main()
