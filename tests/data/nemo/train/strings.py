"""Strings of spoken digits with the true time of every word.

A phrase is a row of single-digit takes by one speaker with short pauses and one background noise at
one level. A stretch is phrases with long pauses between them: each phrase has its own level and
noise, as people move about between sentences. Everything is drawn from the generator that the
caller hands in, so a seed gives the same strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
from scipy.signal import resample_poly

SAMPLE_RATE = 16_000
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
HELD_OUT_SPEAKER = "theo"
# The data set's own split: these takes of every digit are for testing.
FIRST_TRAINING_TAKE = 5
LEVEL = 0.05
# Played faster or slower a voice also sounds smaller or larger, so five speakers make many voices.
PACES_PERCENT = (86, 92, 100, 108, 116)
NOISE_S = 40

FloatSamples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Clip:
    """One digit said once: float32 samples at 16 kHz, at the common level."""

    word: str
    samples: FloatSamples


@dataclass(frozen=True, slots=True)
class TimedWord:
    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Spoken:
    """Samples at 16 kHz and what is said in them, in order of time."""

    samples: FloatSamples
    words: tuple[TimedWord, ...]

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def duration_s(self) -> float:
        return len(self.samples) / SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class Pauses:
    """Ranges in seconds from which a string's pauses are drawn."""

    before_s: tuple[float, float] = (0.05, 0.8)
    between_s: tuple[float, float] = (0.02, 0.5)
    after_s: tuple[float, float] = (0.05, 0.7)
    long_s: tuple[float, float] = (0.4, 2.5)


NOISES = ("white", "pink", "brown", "hum")


def levelled(samples: FloatSamples) -> FloatSamples:
    """The samples at the common root mean square."""
    return (samples / (np.sqrt(np.mean(samples**2)) + 1e-6) * LEVEL).astype(np.float32)


def load_voices(recordings: Path) -> dict[str, list[Clip]]:
    """Every speaker's training clips, in every pace, from files called DIGIT_SPEAKER_TAKE.wav."""
    voices: dict[str, list[Clip]] = {}
    for path in sorted(recordings.glob("*.wav")):
        digit, speaker, take = path.stem.split("_")
        if speaker == HELD_OUT_SPEAKER or int(take) < FIRST_TRAINING_TAKE:
            continue
        samples, rate = soundfile.read(path, dtype="float32")
        for percent in PACES_PERCENT:
            up, down = SAMPLE_RATE * 100, rate * percent
            divisor = np.gcd(up, down)
            clip = levelled(resample_poly(samples, up // divisor, down // divisor))
            voices.setdefault(speaker, []).append(Clip(DIGITS[int(digit)], clip))
    if not voices:
        raise FileNotFoundError(f"no recordings for training in {recordings}")
    return voices


def make_noises(rng: np.random.Generator) -> dict[str, FloatSamples]:
    """Some seconds of each kind of background, at a root mean square of one."""
    count = NOISE_S * SAMPLE_RATE
    bins = np.arange(1, count // 2 + 2)

    def coloured(slope: float) -> npt.NDArray[np.float64]:
        return np.fft.irfft(np.fft.rfft(rng.standard_normal(count)) / bins**slope, count)

    at_s = np.arange(count) / SAMPLE_RATE
    hum = sum(
        np.sin(2 * np.pi * 50 * overtone * at_s + rng.uniform(0, 2 * np.pi)) / overtone
        for overtone in (1, 2, 3, 5)
    )
    made = {
        "white": coloured(0),
        "pink": coloured(0.5),
        "brown": coloured(0.9),
        "hum": hum + 0.2 * rng.standard_normal(count),
    }
    return {name: (noise / noise.std()).astype(np.float32) for name, noise in made.items()}


class Reciter:
    """Says digits in the voices it was given."""

    def __init__(
        self, voices: dict[str, list[Clip]], rng: np.random.Generator, pauses: Pauses | None = None
    ) -> None:
        self._voices = voices
        self._speakers = sorted(voices)
        self._rng = rng
        self._pauses = pauses or Pauses()
        self._noises = make_noises(rng)

    def phrase(self, most_s: float, speaker: str | None = None) -> Spoken:
        """As many words as fit into so many seconds, and at least one."""
        rng, pauses = self._rng, self._pauses
        clips = self._voices[speaker or self._any_speaker()]
        after = self._drawn_samples(pauses.after_s)
        end = self._drawn_samples(pauses.before_s)
        placed: list[tuple[int, Clip, float]] = []
        position = end
        while True:
            clip = clips[rng.integers(len(clips))]
            if placed and position + len(clip.samples) + after > most_s * SAMPLE_RATE:
                break
            placed.append((position, clip, 10 ** (rng.uniform(-3, 3) / 20)))
            end = position + len(clip.samples)
            position = end + self._drawn_samples(pauses.between_s)
        samples = np.zeros(end + after, np.float32)
        for start, clip, gain in placed:
            samples[start : start + len(clip.samples)] += clip.samples * gain
        words = tuple(
            TimedWord(clip.word, start / SAMPLE_RATE, (start + len(clip.samples)) / SAMPLE_RATE)
            for start, clip, _ in placed
        )
        return Spoken(self._in_a_room(samples), words)

    def stretch(self, most_s: float, phrase_s: tuple[float, float]) -> Spoken:
        """Phrases of one speaker with long pauses, about so many seconds in all."""
        rng = self._rng
        speaker = self._any_speaker()
        parts: list[Spoken] = [self._pause()] if rng.random() < 0.3 else []
        left_s = most_s - sum(part.duration_s for part in parts)
        while True:
            parts.append(self.phrase(min(left_s, rng.uniform(*phrase_s)), speaker))
            pause = self._pause()
            left_s -= parts[-1].duration_s + pause.duration_s
            if left_s < phrase_s[0]:
                break
            parts.append(pause)
        return joined(parts)

    def silent_end(self, spoken: Spoken, longest_s: float = 0.6) -> Spoken:
        """The string with digital silence behind it, as an engine feeds to flush a stream."""
        samples = np.zeros(self._drawn_samples((0.1, longest_s)), np.float32)
        return joined([spoken, Spoken(samples, ())])

    def _any_speaker(self) -> str:
        return self._speakers[self._rng.integers(len(self._speakers))]

    def _drawn_samples(self, range_s: tuple[float, float]) -> int:
        return int(self._rng.uniform(*range_s) * SAMPLE_RATE)

    def _pause(self) -> Spoken:
        """A long pause: faint noise, or a microphone that is off."""
        count = self._drawn_samples(self._pauses.long_s)
        faint = 0.0 if self._rng.random() < 0.2 else 10 ** self._rng.uniform(-4.5, -2.5)
        return Spoken(self._noise(count) * np.float32(faint), ())

    def _noise(self, count: int) -> FloatSamples:
        noise = self._noises[NOISES[self._rng.integers(len(NOISES))]]
        return np.take(noise, np.arange(count) + self._rng.integers(len(noise)), mode="wrap")

    def _in_a_room(self, samples: FloatSamples) -> FloatSamples:
        rng = self._rng
        if rng.random() < 0.9:
            ratio_db = rng.uniform(8, 38)
            samples = samples + self._noise(len(samples)) * LEVEL * 10 ** (-ratio_db / 20)
        samples = samples * 10 ** (rng.uniform(-14, 10) / 20)
        return (samples / max(1.0, np.abs(samples).max() / 0.99)).astype(np.float32)


def joined(parts: Sequence[Spoken]) -> Spoken:
    """The parts one after another, with their words at their new times."""
    words: list[TimedWord] = []
    start_s = 0.0
    for part in parts:
        words += [
            TimedWord(word.text, word.start_s + start_s, word.end_s + start_s)
            for word in part.words
        ]
        start_s += part.duration_s
    return Spoken(np.concatenate([part.samples for part in parts]), tuple(words))
