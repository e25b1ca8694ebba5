"""Audio files for tests, made from samples."""

from __future__ import annotations

import io
import wave

from asr_engine.audio import SAMPLE_RATE, FloatSamples, float_to_pcm16


def wav_bytes(samples: FloatSamples) -> bytes:
    """A mono PCM16 WAV at SAMPLE_RATE."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(float_to_pcm16(samples))
    return buffer.getvalue()
