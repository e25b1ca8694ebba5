"""Listens to a few places of every audio track, and reads the one that is transcribed.

The survey is bounded whatever the recording's length: `SPOTS` places of `SPOT_S` a track. Speech is
what voice activity hears; two channels that both speak differ where they rarely carry one voice,
whatever its delay and sign, at nearly the same level. Two voices at once are known, though each
leaks into the other channel, by the moments and frequencies that only one channel has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE, FloatSamples, samples_to_ms
from asr_engine.batch.decode import (
    AudioSource,
    decode_channels,
    decode_source,
    decode_spot,
    open_audio,
)
from asr_engine.batch.windows import SpeechRules
from asr_engine.errors import AudioError
from asr_engine.ports import SpeechFinder
from asr_engine.tracks import MIN_SPEECH_MS, ChannelMode, ChannelPlan, TrackSurvey

SPOTS: Final = 12
SPOT_S: Final = 10.0
MAX_TRACKS: Final = 8
"""Tracks of a recording that are listened to; the rest cannot be chosen."""

ANTIPHASE: Final = -0.5
"""Correlation of two channels below which they cancel each other."""
FRAME_WINDOWS: Final = 16
"""Windows of the finder (half a second) in which two channels are compared."""
MAX_DELAY_SAMPLES: Final = SAMPLE_RATE // 50
"""Between two microphones seven metres apart."""
SAME_SOUND: Final = 0.09
"""Likeness of half a second of speech from which on two channels carry one voice: about 0.05 for
two voices, 0.1 for one in a room whose echoes are four times as loud as the voice itself."""
CROSSTALK_DB: Final = 12
"""A voice this much quieter in one channel belongs to the other one and only leaks into it."""
CROSSTALK: Final = 0.2
"""Likeness from which on the quieter channel holds nothing but what leaks into it."""
CROSSTALK_SAMPLES: Final = SAMPLE_RATE // 2
VOICE_HZ: Final = (200, 3500)
FLOOR: Final = 1e-3
"""Of the mean magnitude: frequencies without sound would count as much as those with it."""
OWN_SOUND: Final = 0.4
"""Share of each channel's power that is hardly in the other, from which on they carry two voices:
up to 0.15 for voices in a room, 0.25 beside loud music, about 0.6 for a call's sides at once."""
OWN_SAMPLES: Final = 512
"""In which one channel's sound is told from the other's: about a syllable's steady part."""
SHARED_SPEECH: Final = 0.3
"""Share of speech heard as one voice in both channels up to which they are different."""
SILENCE_DB: Final = -120


def has_choice(path: Path) -> bool:
    """More than one track, or more than one channel. Raises what `open_audio` raises."""
    with open_audio(path) as source:
        return len(source.container.streams.audio) > 1 or source.channels > 1


def survey(path: Path, *, finder: SpeechFinder) -> list[TrackSurvey]:
    """What each audio track holds; empty where there is nothing to choose.

    A track that does not decode is left out. Raises what `open_audio` raises.
    """
    if not has_choice(path):
        return []
    with open_audio(path) as source:
        count, default = len(source.container.streams.audio), source.track
    found = []
    for track in range(min(count, MAX_TRACKS)):
        try:
            found.append(_survey_track(path, track, finder, is_default=track == default))
        except AudioError:
            continue
    return found


def decode_planned(source: AudioSource, plan: ChannelPlan) -> Iterator[FloatSamples]:
    """Blocks of an opened source as `plan` wants them: float32 [channels, n] where each channel is
    transcribed on its own, else [n].
    """
    match plan.mode:
        case ChannelMode.EACH:
            for block in decode_channels(source, len(plan.labels)):
                yield _without_crosstalk(block)
        case ChannelMode.LEFT:
            yield from (block[0] for block in decode_channels(source, 2))
        case ChannelMode.RIGHT:
            yield from (block[1] for block in decode_channels(source, 2))
        case ChannelMode.MIX:
            yield from decode_source(source)


def _survey_track(path: Path, track: int, finder: SpeechFinder, *, is_default: bool) -> TrackSurvey:
    with open_audio(path, track=track) as source:
        heard = _Heard(source.channels)
        spots = _spots(source.declared_s or 0.0)
        for start_s, length_s in spots:
            heard.listen(decode_spot(source, start_s, length_s), finder)
        metadata = source.stream.metadata
        return TrackSurvey(
            index=track,
            channels=source.channels,
            heard_ms=samples_to_ms(heard.samples),
            speech_ms=tuple(heard.speech_ms),
            level_db=tuple(_level_db(power / max(1, heard.samples)) for power in heard.power),
            is_default=is_default,
            is_antiphase=heard.is_antiphase,
            are_channels_different=heard.are_different,
            # It ended before it was left: a stated duration may be wrong.
            is_heard_whole=len(spots) == 1 and heard.samples < SPOTS * SPOT_S * SAMPLE_RATE,
            title=str(metadata.get("title", ""))[:100],
            language=str(metadata.get("language", ""))[:16],
        )


def _spots(declared_s: float) -> list[tuple[float, float]]:
    """(start, length) in seconds: all of a short recording, else places spread over it."""
    if declared_s <= SPOTS * SPOT_S:
        return [(0.0, SPOTS * SPOT_S)]
    step_s = (declared_s - SPOT_S) / (SPOTS - 1)
    return [(number * step_s, SPOT_S) for number in range(SPOTS)]


def _level_db(power: float) -> int:
    return max(SILENCE_DB, round(10 * np.log10(power))) if power > 0 else SILENCE_DB


@dataclass(slots=True)
class _Heard:
    """What has been heard of one track. More than two channels are heard as the models hear them:
    mixed.
    """

    channels: int
    samples: int = 0
    product: float = 0.0
    shared_frames: int = 0
    speech_frames: int = 0
    power: list[float] = field(default_factory=list)
    speech_ms: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        lanes = self.channels if self.channels <= 2 else 1
        self.power, self.speech_ms = [0.0] * lanes, [0] * lanes

    def listen(self, spot: FloatSamples, finder: SpeechFinder) -> None:
        """One more place, float32 [channels, n]."""
        lanes = spot[: len(self.power)] if self.channels <= 2 else spot.mean(axis=0)[None]
        if len(lanes) < len(self.power):  # mono for a while
            lanes = np.repeat(lanes[:1], len(self.power), axis=0)
        self.samples += lanes.shape[1]
        threshold = SpeechRules().threshold
        speaking = [
            np.array(list(finder.speech_probabilities([np.ascontiguousarray(lane)]))) >= threshold
            for lane in lanes
        ]
        for number, (lane, speech) in enumerate(zip(lanes, speaking, strict=True)):
            self.power[number] += float(np.sum(np.square(lane, dtype=np.float64)))
            self.speech_ms[number] += samples_to_ms(int(speech.sum()) * finder.window_samples)
        if len(lanes) == 2:
            self.product += float(np.sum(lanes[0] * lanes[1], dtype=np.float64))
            self._compare(lanes, speaking, finder.window_samples)

    def _compare(
        self, lanes: FloatSamples, speaking: list[NDArray[np.bool_]], window_samples: int
    ) -> None:
        """Count the frames that hold speech, and those that hold the same in both channels."""
        for start in range(0, len(speaking[0]) - FRAME_WINDOWS + 1, FRAME_WINDOWS):
            left, right = (
                bool(speech[start : start + FRAME_WINDOWS].mean() > 0.5) for speech in speaking
            )
            self.speech_frames += left or right
            if left and right:
                place = slice(start * window_samples, (start + FRAME_WINDOWS) * window_samples)
                self.shared_frames += _is_shared(lanes[:, place])

    @property
    def is_antiphase(self) -> bool:
        scale = float(np.sqrt(np.prod(self.power))) if len(self.power) == 2 else 0.0
        return scale > 0 and self.product / scale < ANTIPHASE

    @property
    def are_different(self) -> bool:
        if len(self.power) != 2 or min(self.speech_ms) < MIN_SPEECH_MS:
            return False
        return self.shared_frames <= SHARED_SPEECH * self.speech_frames


def _is_shared(frame: FloatSamples) -> bool:
    """Whether both channels [2, n] carry one voice, as two microphones in a room do.

    Where both sides of a call speak at once, each channel holds a trace of the other, which makes
    them alike, but most of what it holds is its own.
    """
    return (
        _difference_db(frame) < CROSSTALK_DB
        and _likeness(*frame) >= SAME_SOUND
        and _own_share(frame) < OWN_SOUND
    )


def _without_crosstalk(block: FloatSamples) -> FloatSamples:
    """The block [2, n] with silence where a channel holds only what leaks into it."""
    cleaned = block
    for start in range(0, block.shape[1], CROSSTALK_SAMPLES):
        frame = block[:, start : start + CROSSTALK_SAMPLES]
        if _difference_db(frame) >= CROSSTALK_DB and _likeness(*frame) >= CROSSTALK:
            cleaned = cleaned.copy() if cleaned is block else cleaned
            quieter = int(_power(frame[0]) > _power(frame[1]))
            cleaned[quieter, start : start + CROSSTALK_SAMPLES] = 0
    return cleaned


def _difference_db(frame: FloatSamples) -> float:
    """Between the channels [2, n]; 0 where one of them is silent."""
    left, right = (_power(samples) for samples in frame)
    return abs(10 * float(np.log10(left / right))) if left and right else 0.0


def _likeness(left: FloatSamples, right: FloatSamples) -> float:
    """How much of one is the other at some delay, level and sign, 0..1.

    Generalised cross-correlation with phase transform (Knapp and Carter, 1976) over the voice's
    frequencies, at its peak: one voice has a peak in an echoing room too.
    """
    size = 2 * len(left)
    hertz = np.fft.rfftfreq(size, 1 / SAMPLE_RATE)
    band = (hertz >= VOICE_HZ[0]) & (hertz <= VOICE_HZ[1])
    product = np.where(band, np.fft.rfft(left, size) * np.conj(np.fft.rfft(right, size)), 0)
    magnitude = np.abs(product)
    if not magnitude.any():
        return 0.0
    whitened = product / (magnitude + FLOOR * float(magnitude.mean()))
    correlation = np.abs(np.fft.irfft(whitened, size)) * size / 2 / int(band.sum())
    near = correlation[: MAX_DELAY_SAMPLES + 1].max(), correlation[-MAX_DELAY_SAMPLES:].max()
    return float(max(near))


def _own_share(frame: FloatSamples) -> float:
    """Share of power, 0..1, that lies where the other channel [2, n] is `CROSSTALK_DB` weaker, in
    the channel that has less of it.

    Two voices seldom meet in one frequency at one moment (Yilmaz and Rickard, 2004), so a leak
    hides little of either. One voice in two channels differs in level by a constant, or by its
    echoes.
    """
    starts = np.arange(0, frame.shape[1] - OWN_SAMPLES + 1, OWN_SAMPLES // 2)
    pieces = frame[:, starts[:, None] + np.arange(OWN_SAMPLES)] * np.hanning(OWN_SAMPLES)
    hertz = np.fft.rfftfreq(OWN_SAMPLES, 1 / SAMPLE_RATE)
    band = (hertz >= VOICE_HZ[0]) & (hertz <= VOICE_HZ[1])
    left, right = np.square(np.abs(np.fft.rfft(pieces)[..., band]))
    weaker = 10 ** (CROSSTALK_DB / 10)
    return min(
        float(one[one >= weaker * other].sum() / max(one.sum(), np.finfo(np.float64).tiny))
        for one, other in ((left, right), (right, left))
    )


def _power(samples: FloatSamples) -> float:
    return float(np.mean(np.square(samples, dtype=np.float64))) if samples.size else 0.0
