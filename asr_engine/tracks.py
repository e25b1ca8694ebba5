"""The audio tracks of a recording: what a survey found in each, and which is transcribed how.

Plain, frozen, JSON-able. Who listens to them: `asr_engine.batch.channels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

CHANNEL_LABELS: Final = ("left", "right")
"""Speakers of a two-channel call."""
SILENT_DB: Final = -90
"""RMS level, in dB of full scale, up to which a channel holds no more than dither."""
LOUD_DB: Final = 10
"""A channel less than this below the other one disturbs it."""


@dataclass(frozen=True, slots=True)
class TrackSurvey:
    """What a few places of an audio track hold. `index` counts the recording's audio tracks.

    `speech_ms` is the speech and `level_db` the RMS level heard in each channel, in `heard_ms` of
    audio; more than two channels count as one. Channels in antiphase cancel each other; different
    ones do not carry the same voices, as in a call whose sides were recorded apart. `title` and
    `language` are what the file says, if anything.
    """

    index: int
    channels: int
    heard_ms: int
    speech_ms: tuple[int, ...]
    level_db: tuple[int, ...]
    is_default: bool = False
    is_antiphase: bool = False
    are_channels_different: bool = False
    title: str = ""
    language: str = ""

    @property
    def has_speech(self) -> bool:
        return any(self.speech_ms)

    @property
    def is_silent(self) -> bool:
        return max(self.level_db) <= SILENT_DB

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrackSurvey:
        lists = {name: tuple(data[name]) for name in ("speech_ms", "level_db")}
        return cls(**(data | lists))


class ChannelMode(StrEnum):
    """All channels together, one of them alone, or each on its own with itself as the speaker."""

    MIX = "mix"
    LEFT = "left"
    RIGHT = "right"
    EACH = "each"


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    """Which audio track is transcribed, and how. `track` None is the file's default one."""

    track: int | None = None
    mode: ChannelMode = ChannelMode.MIX

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of each channel that is transcribed on its own; empty where they are mixed."""
        return CHANNEL_LABELS if self.mode is ChannelMode.EACH else ()


def plan_of(tracks: Sequence[TrackSurvey], chosen: int | None = None) -> ChannelPlan:
    """The track that somebody has chosen, else the default one, else the one with most speech.

    A default track without speech gives way to one with speech. Channels are mixed, unless they are
    different, or one that does not speak disturbs the one that does. Without a survey, those of the
    default track are mixed.
    """
    by_index = {track.index: track for track in tracks}
    track = by_index.get(chosen) if chosen is not None else None
    track = track or _best(tracks)
    if track is None:
        return ChannelPlan()
    return ChannelPlan(track.index, _mode(track))


def _best(tracks: Sequence[TrackSurvey]) -> TrackSurvey | None:
    if not tracks:
        return None
    speaking = [track for track in tracks if track.has_speech]
    sounding = [track for track in tracks if not track.is_silent]
    return max(
        speaking or sounding or tracks,
        key=lambda track: (track.is_default, sum(track.speech_ms), -track.index),
    )


def _mode(track: TrackSurvey) -> ChannelMode:
    if track.are_channels_different:
        return ChannelMode.EACH
    if len(track.speech_ms) == 2 and abs(track.level_db[0] - track.level_db[1]) < LOUD_DB:
        left, right = track.speech_ms
        if left and not right:
            return ChannelMode.LEFT
        if right and not left:
            return ChannelMode.RIGHT
    return ChannelMode.MIX
