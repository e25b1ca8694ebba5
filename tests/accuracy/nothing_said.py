"""A hundred sounds that nobody speaks in: whatever text they yield is invented.

    python -m tests.accuracy.nothing_said [--clips 100] [--seed 0] [--pass refined] [FILE …]

Generates silence, hum, noise of several colours, tones, clicks, chords and melodies, of ten seconds
to a minute each and at several levels, and hears them with the batch model of the settings; files
that are named are heard as well. One JSON line for each clip with text, then a summary; ends with 1
where there was any.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import soundfile

from asr_engine import registry
from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.batch import two_pass
from asr_engine.batch.two_pass import Pass, TwoPassOptions
from asr_engine.config import engine_settings

LEVELS: Final = (0.003, 0.03, 0.2, 0.7)
LENGTHS_S: Final = (10, 20, 35, 60)
SEMITONES: Final = (0, 2, 4, 5, 7, 9, 11, 12)
BASE_HZ: Final = 220.0

Sound = Callable[[np.random.Generator, int], FloatSamples]
"""`make(random, samples)`: float32 [samples] whose loudest sample is about 1."""


def silence(random: np.random.Generator, samples: int) -> FloatSamples:
    return np.zeros(samples, np.float32)


def hum(random: np.random.Generator, samples: int) -> FloatSamples:
    """The mains and its overtones."""
    mains_hz = random.choice([50.0, 60.0])
    return _normal(sum(_tone(mains_hz * n, samples) / n for n in (1, 2, 3, 5, 7)))


def noise(random: np.random.Generator, samples: int) -> FloatSamples:
    """White to brown."""
    spectrum = np.fft.rfft(random.standard_normal(samples))
    slope = random.uniform(0.0, 1.0)
    return _normal(np.fft.irfft(spectrum / np.arange(1, len(spectrum) + 1) ** slope, samples))


def breath(random: np.random.Generator, samples: int) -> FloatSamples:
    """Noise that swells and falls like wind or somebody breathing."""
    swell = 0.5 + 0.5 * _tone(random.uniform(0.1, 0.5), samples)
    return _normal(noise(random, samples) * swell)


def beep(random: np.random.Generator, samples: int) -> FloatSamples:
    """A tone, switched on and off."""
    tone = _tone(random.uniform(300, 3000), samples)
    is_on = np.arange(samples) // (SAMPLE_RATE // 2) % random.integers(1, 5) == 0
    return _normal(tone * is_on)


def clicks(random: np.random.Generator, samples: int) -> FloatSamples:
    """A keyboard or a Geiger counter."""
    sound = np.zeros(samples)
    for start in random.integers(0, samples - 400, size=samples // 4000):
        sound[start : start + 400] += random.standard_normal(400) * np.exp(-np.arange(400) / 60)
    return _normal(sound)


def chord(random: np.random.Generator, samples: int) -> FloatSamples:
    """A sounding chord with overtones and a slow tremolo."""
    root = BASE_HZ * 2 ** (random.integers(-12, 12) / 12)
    voices = (root * 2 ** (step / 12) for step in (0, 4, 7, 12))
    sound = sum(_tone(hz * n, samples) / n**1.5 for hz in voices for n in (1, 2, 3, 4))
    return _normal(sound * (0.8 + 0.2 * _tone(5.0, samples)))


def melody(random: np.random.Generator, samples: int) -> FloatSamples:
    """Plucked notes of a scale over a drum."""
    sound = np.zeros(samples)
    step = int(SAMPLE_RATE * random.uniform(0.15, 0.5))
    for start in range(0, samples - step, step):
        hz = BASE_HZ * 2 ** (random.choice(SEMITONES) / 12)
        length = min(2 * step, samples - start)
        fading = np.exp(-np.arange(length) / (0.4 * SAMPLE_RATE))
        note = sum(_tone(hz * n, length) / n**2 for n in (1, 2, 3))
        sound[start : start + length] += note * fading
        sound[start : start + 800] += (
            0.3 * random.standard_normal(800) * np.exp(-np.arange(800) / 90)
        )
    return _normal(sound)


SOUNDS: Final[dict[str, Sound]] = {
    function.__name__: function
    for function in (silence, hum, noise, breath, beep, clicks, chord, melody)
}


def _tone(hz: float, samples: int) -> np.ndarray:
    return np.sin(2 * np.pi * hz * np.arange(samples) / SAMPLE_RATE)


def _normal(sound: np.ndarray | float) -> FloatSamples:
    sound = np.asarray(sound)
    return (sound / max(1e-9, float(np.abs(sound).max()))).astype(np.float32)


def write_clips(folder: Path, count: int, seed: int) -> Iterator[Path]:
    """`count` files, the kinds in turn, the levels and lengths by chance."""
    random = np.random.default_rng(seed)
    kinds = list(SOUNDS.items())
    for number in range(count):
        name, make = kinds[number % len(kinds)]
        seconds, level = int(random.choice(LENGTHS_S)), float(random.choice(LEVELS))
        path = folder / f"{number:03d}-{name}-{seconds}s-{level}.flac"
        soundfile.write(path, level * make(random, seconds * SAMPLE_RATE), SAMPLE_RATE)
        yield path


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="heard as well")
    parser.add_argument("--clips", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pass", dest="pass_", type=Pass, default=Pass.REFINED, choices=list(Pass))
    arguments = parser.parse_args()
    settings = engine_settings()
    model, finder = registry.batch_model(settings), registry.speech_finder(settings)
    options = TwoPassOptions(is_draft_only=arguments.pass_ is Pass.DRAFT)
    heard = with_text = unclear = 0
    with tempfile.TemporaryDirectory() as folder:
        clips = write_clips(Path(folder), arguments.clips, arguments.seed)
        for path in (*clips, *arguments.files):
            groups = two_pass.transcribe(path, model=model, finder=finder, options=options)
            segments = [
                segment
                for group in groups
                if group.pass_ is arguments.pass_
                for segment in group.segments
            ]
            text = " ".join(segment.text for segment in segments).strip()
            heard += 1
            with_text += bool(text)
            unclear += any(segment.mark for segment in segments)
            if text:
                sys.stdout.write(json.dumps({"clip": path.name, "text": text}) + "\n")
    summary = {
        "model": model.name,
        "pass": arguments.pass_,
        "clips": heard,
        "with_text": with_text,
        "marked_unclear": unclear,
    }
    sys.stdout.write(json.dumps(summary) + "\n")
    return 1 if with_text else 0


if __name__ == "__main__":
    sys.exit(main())
