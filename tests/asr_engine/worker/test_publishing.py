"""What leaves the engine is written as the site wants it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest

from asr_engine.events import EndpointReason, Final, Partial
from asr_engine.protocol import EngineEvent
from asr_engine.results import Word
from asr_engine.worker.lifecycle import Lifecycle
from asr_engine.worker.ownership import Claim, Ownership
from asr_engine.worker.publishing import Publisher
from asr_engine.worker.sessions import RunningSession, SessionTable

WORDS = tuple(
    Word(text, 100 * i, 100 * i + 100, has_space_before=False)
    for i, text in enumerate("開會用Zoom")
)


class Told:
    """A broker and an ownership that keep what they are told."""

    def __init__(self) -> None:
        self.finals: list[EngineEvent] = []
        self.partials: list[str] = []
        self.has_partial = asyncio.Event()

    async def publish(self, session: str, *, event: EngineEvent | None, **_: object) -> bool:
        if event is not None:
            self.finals.append(event)
        return True

    def pipeline(self, *, transaction: bool) -> _Pipeline:
        assert not transaction
        return _Pipeline(self)


class _Pipeline:
    def __init__(self, told: Told) -> None:
        self._told = told

    def publish(self, channel: str, message: str) -> None:
        self._told.partials.append(message)

    async def execute(self) -> None:
        self._told.has_partial.set()


async def told(*, language: str | None, heard_language: str | None) -> Told:
    """Publishes a partial and a final of one utterance."""
    told, sessions = Told(), SessionTable()
    claim = Claim(session="one", epoch=1, next_utterance=0, resume_sample=0)
    running = RunningSession.of(claim, mode_ms=160, language=language)
    sessions.add(running)
    publisher = Publisher(
        cast("Any", told),
        cast("Ownership", told),
        sessions,
        cast("Lifecycle", None),
        on_endpoint=lambda _: None,
        script="hans",
    )
    tasks = [
        asyncio.create_task(part)
        for part in (publisher.publish_events(), publisher.publish_partials())
    ]
    publisher.deliver(
        [Partial(running.stream, 0, 0, 700, "開會用Zoom", WORDS, language=heard_language)]
    )
    await told.has_partial.wait()
    publisher.deliver(
        [
            Final(
                stream=running.stream,
                utterance=0,
                start_ms=0,
                end_ms=700,
                text="開會用Zoom",
                words=WORDS,
                reason=EndpointReason.SILENCE,
                resume_sample=0,
                speech_end_ms=700,
                language=heard_language,
            )
        ]
    )
    await publisher.drain()
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    return told


@pytest.mark.parametrize(("language", "heard_language"), [("zh", None), (None, "zh")])
async def test_captions_are_in_the_chosen_script(
    language: str | None, heard_language: str | None
) -> None:
    events = await told(language=language, heard_language=heard_language)
    (final,) = events.finals
    assert final.text == "开会用 Zoom"
    assert "".join(word["text"] for word in final.words) == "开会用Zoom"
    assert final.words[3]["has_space_before"] is True
    assert "开会用 Zoom" in events.partials[0]


async def test_captions_in_japanese_stay_as_they_are() -> None:
    events = await told(language="ja", heard_language="ja")
    assert events.finals[0].text == "開會用Zoom"
