"""Streams, slots, scheduler, engine: continuous batching of live streams over one model."""

from __future__ import annotations

from asr_engine.streaming.engine import Engine, MonotonicClock

__all__ = ["Engine", "MonotonicClock"]
