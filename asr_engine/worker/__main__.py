"""`python -m asr_engine.worker`: load the models, then serve until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import sys

import numpy as np
import structlog
from prometheus_client import start_http_server

from asr_engine.audio import SAMPLE_RATE
from asr_engine.config import EngineSettings, engine_settings
from asr_engine.errors import EngineError, ModelError, UnsupportedLanguageError
from asr_engine.events import Failed
from asr_engine.registry import streaming_model, voice_activity
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

    Raises ModelError when a model cannot be used.
    """
    for language in (ENGLISH, None):
        stream = "rehearsal"
        with contextlib.suppress(UnsupportedLanguageError):
            engine.open_stream(stream, language=language)
            engine.accept_audio(stream, 0, np.zeros(SAMPLE_RATE, dtype=np.float32))
            engine.end_audio(stream)
            while engine.step():
                pass
            if any(isinstance(event, Failed) for event in engine.take_events()):
                raise ModelError("the model failed on a second of silence")
            engine.close_stream(stream)


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
    except EngineError as error:
        log.error("model_not_loaded", code=error.code, detail=str(error))  # noqa: TRY400 -- expected
        return 1
    if settings.metrics_port:
        start_http_server(settings.metrics_port, addr="127.0.0.1", registry=engine.metrics.registry)
    asyncio.run(serve(engine, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
