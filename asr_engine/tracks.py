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
MIN_SPEECH_MS: Final = 500
"""Speech in a channel from which on it can be told whether it carries voices of its own."""
HARDLY: Final = 0.05
"""Of the other channel's speech: with less, hardly anybody speaks in a channel."""


@dataclass(frozen=True, slots=True)
class TrackSurvey:
    """What a few places of an audio track hold. `index` counts the recording's audio tracks.

    `speech_ms` is the speech and `level_db` the RMS level heard in each channel, in `heard_ms` of
    audio; more than two channels count as one. Channels in antiphase cancel each other; different
    ones do not carry the same voices, as in a call whose sides were recorded apart. Where the track
    was not heard whole, who speaks seldom may have been missed. `title` and `language` are what the
    file says, if anything.
    """

    index: int
    channels: int
    heard_ms: int
    speech_ms: tuple[int, ...]
    level_db: tuple[int, ...]
    is_default: bool = False
    is_antiphase: bool = False
    are_channels_different: bool = False
    is_heard_whole: bool = False
    title: str = ""
    language: str = ""

    @property
    def has_speech(self) -> bool:
        return any(self.speech_ms)

    @property
    def is_silent(self) -> bool:
        return max(self.level_db) <= SILENT_DB

    @property
    def seldom_channel(self) -> int | None:
        """The one of two channels in which hardly anybody was heard while somebody spoke in the
        other."""
        if len(self.speech_ms) != 2:
            return None
        little, much = sorted(self.speech_ms)
        if not much or little >= MIN_SPEECH_MS or little > HARDLY * much:
            return None
        return self.speech_ms.index(little)

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
    different, or one in which hardly anybody speaks disturbs the other: that is left out where it
    was heard whole without a word, else each is transcribed on its own, lest words be lost. Without
    a survey, those of the default track are mixed.
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
    seldom = track.seldom_channel
    if seldom is None or abs(track.level_db[0] - track.level_db[1]) >= LOUD_DB:
        return ChannelMode.MIX
    if track.is_heard_whole:
        alone = ChannelMode.RIGHT if seldom == 0 else ChannelMode.LEFT
        return ChannelMode.MIX if track.speech_ms[seldom] else alone
    # Where little was heard in either, both may well carry the same.
    return ChannelMode.EACH if max(track.speech_ms) >= MIN_SPEECH_MS else ChannelMode.MIX
