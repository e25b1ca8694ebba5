"""`python -m asr_engine.worker`: load the models, then serve until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import secrets
import signal
import sys

import numpy as np
import structlog
from prometheus_client import start_http_server

from asr_engine.config import EngineSettings, engine_settings
from asr_engine.errors import EngineError, ModelError, UnsupportedLanguageError
from asr_engine.events import Failed
from asr_engine.registry import streaming_model, voice_activity
from asr_engine.scripts import prepare
from asr_engine.streaming import Engine
from asr_engine.worker.connections import connect
from asr_engine.worker.service import EngineService

ENGLISH = "en"

log = structlog.get_logger("asr_engine.worker")


def configure_log() -> None:
    """Structured lines on standard error."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def rehearse(engine: Engine) -> None:
    """Load and try what a first stream needs, so that its admission need not wait for it.

    A model that hears silence is also tried with more and more streams at once: the engine then
    knows from the start what they cost, and admits as many as it can keep on time. Raises
    ModelError when a model cannot be used.
    """
    usable: str | None = ENGLISH
    for language in (ENGLISH, None):
        with contextlib.suppress(UnsupportedLanguageError):
            _hear_silence(engine, language, streams=1)
            usable = language
    together = min(engine.slots, engine.capabilities.batch_limit)
    streams = 1
    while streams < together and not engine.capabilities.is_gated:
        streams = min(2 * streams, together)
        _hear_silence(engine, usable, streams=streams)


def _hear_silence(engine: Engine, language: str | None, *, streams: int) -> None:
    """Three chunks: one that may be slow because it is the first of its size, and two more."""
    names = [f"rehearsal-{index}" for index in range(streams)]
    capabilities = engine.capabilities
    samples = 3 * capabilities.chunk_samples[capabilities.default_mode_ms]
    for name in names:
        engine.open_stream(name, language=language)
        engine.accept_audio(name, 0, np.zeros(samples, dtype=np.float32))
        engine.end_audio(name)
    while engine.step():
        pass
    if any(isinstance(event, Failed) for event in engine.take_events()):
        raise ModelError("the model failed on silence")
    for name in names:
        engine.close_stream(name)


async def serve(engine: Engine, settings: EngineSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    broker, audio = connect(settings.broker_url), connect(settings.audio_url)
    service = EngineService(
        engine,
        name=settings.name,
        incarnation=secrets.token_hex(4),
        broker=broker,
        audio=audio,
        script=settings.chinese_script,
    )
    try:
        await service.run(stop)
    finally:
        await broker.aclose()
        await audio.aclose()


def main() -> int:
    configure_log()
    settings = engine_settings()
    if not settings.broker_url or not settings.audio_url:
        log.error("settings_missing", needed=["ASR_BROKER_URL", "ASR_AUDIO_URL"])
        return 2
    try:
        model, detector = streaming_model(settings), voice_activity(settings)
        engine = Engine(model, detector, slots=settings.slots)
        rehearse(engine)
        prepare(settings.chinese_script)
    except EngineError as error:
        log.error("model_not_loaded", code=error.code, detail=str(error))  # noqa: TRY400 -- expected
        return 1
    if settings.metrics_port:
        start_http_server(settings.metrics_port, addr="127.0.0.1", registry=engine.metrics.registry)
    # What was loaded stays: without this, each full collection looks through all of it again while
    # every stream waits.
    gc.collect()
    gc.freeze()
    asyncio.run(serve(engine, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
