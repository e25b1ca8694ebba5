"""REST v1: the captions of a live session: what is stored, as text, and as they come.

Captions as they come are Server-Sent Events with the members that the captions socket sends. The
`id` of an event is its `seq`: whoever comes back with `Last-Event-ID` misses nothing and gets
nothing twice. What may still change (`partial`) and what happens to the session (`state`) have
none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Final
from uuid import UUID

from channels.db import database_sync_to_async
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router, Schema
from pydantic import Field
from redis.exceptions import RedisError

from asr_engine.protocol import encode
from transcription import selectors
from transcription.api import captions
from transcription.api.access import READS_LIVE, ApiRequest
from transcription.api.authentication import authenticate
from transcription.api.resources.live_sessions import CaptionOut, CaptionsOut
from transcription.errors import InvalidInputError, NotFoundError, TryLaterError
from transcription.feeds.fanout import CaptionEvent
from transcription.feeds.reader import OVER, CaptionReader
from transcription.models import LiveSession, LiveState
from transcription.services.caption_history import history_after
from transcription.services.caption_text import MEDIA_TYPES
from transcription.services.session_access import user_of_session
from webapp.accounts.audit import record_act
from webapp.accounts.models import Act, Scope, User

KEEP_ALIVE_S: Final = 15.0
"""Proxies close what is silent for longer."""
COME_BACK_MS: Final = 2000
MOST_SEQ: Final = 2**31 - 1
FOR_THE_SPEAKER: Final = frozenset({"ack", "taken"})

router = Router()

TEXTS = {
    "responses": {
        200: {
            "description": "What was said so far.",
            "content": {
                media_type.partition(";")[0]: {"schema": {"type": "string"}}
                for media_type in MEDIA_TYPES.values()
            },
        },
        304: {"description": "Nothing new was said."},
    }
}
EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "id": {"type": "string", "description": "The `seq`, of what is stored."},
        "data": {"type": "string", "description": "JSON, as the captions socket sends it."},
    },
}
EVENTS = {
    "responses": {
        200: {
            "description": "`final`, `refined`, `partial`, `gap`, `state`, `closed`, `error`.",
            "content": {"text/event-stream": {"schema": EVENT}},
        },
        204: {"description": "The session has ended, and you have read everything."},
    },
    "parameters": [
        {
            "in": "header",
            "name": "Last-Event-ID",
            "required": False,
            "schema": {"type": "integer", "minimum": 0, "maximum": MOST_SEQ},
            "description": "The `id` of the last event that was read; stands above `after_seq`.",
        }
    ],
}


class After(Schema):
    """From where on."""

    after_seq: Annotated[
        int, Field(ge=0, le=MOST_SEQ, description="The `seq` of what was read last.")
    ] = 0


class Lines(Schema):
    """How much of it."""

    lines: Annotated[
        int, Field(ge=0, le=100, description="The last lines of plain text; 0: all.")
    ] = 0


@router.get("/{session_id}/captions", auth=READS_LIVE, response=CaptionsOut)
def list_captions(request: ApiRequest, session_id: UUID, after: Query[After]) -> CaptionsOut:
    """What is stored, with words; while the session runs, ask again with `last_seq`."""
    session = selectors.access_live_session_by_id(request.auth, session_id)
    record_act(act=Act.VIEWED, actor=request.auth, on=session)
    return CaptionsOut(
        state=LiveState(session.state),
        last_seq=session.last_seq,
        captions=[CaptionOut.of(event) for event in history_after(session, after.after_seq)],
    )


@router.get(
    "/{session_id}/captions.{extension}",
    auth=READS_LIVE,
    openapi_extra=TEXTS,
)
def download_captions(
    request: ApiRequest, session_id: UUID, extension: str, lines: Query[Lines]
) -> HttpResponseBase:
    """What is stored, as plain text (`txt`) or WebVTT (`vtt`)."""
    if extension not in MEDIA_TYPES:
        raise NotFoundError
    return captions.live_caption_text(request, session_id=session_id, extension=extension)


@router.get("/{session_id}/captions/events", auth=READS_LIVE, openapi_extra=EVENTS)
async def follow_captions(
    request: ApiRequest, session_id: UUID, after: Query[After]
) -> HttpResponseBase:
    """Captions as they come, as Server-Sent Events: first what is stored, then what is said."""
    after_seq = _last_event_id(request) or after.after_seq
    session = await database_sync_to_async(_open)(request, session_id)
    if session.state == LiveState.ENDED and session.last_seq <= after_seq:
        return HttpResponse(status=204)

    async def check_rights() -> None:
        await database_sync_to_async(_read)(request, session_id)

    reader = CaptionReader(str(session_id), request.auth.pk, check_rights)
    try:
        await reader.open()
    except (RedisError, OSError):
        raise TryLaterError from None
    response = StreamingHttpResponse(
        _events(reader, request, session_id, after_seq), content_type="text/event-stream"
    )
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


async def _events(
    reader: CaptionReader, request: ApiRequest, session_id: UUID, after_seq: int
) -> AsyncIterator[bytes]:
    reader.begin()
    try:
        yield f"retry: {COME_BACK_MS}\n\n".encode()
        session, stored = await _history(request, session_id, after_seq)
        for written in stored:
            yield written
        told = max(after_seq, session.last_seq)
        while session.state != LiveState.ENDED:
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    fresh = await reader.feed.take()
            except TimeoutError:
                yield b":\n\n"
                continue
            for event in fresh:
                if event is OVER:
                    yield _problem(reader)
                    return
                if event.seq > told + 1 or (event.type == "head" and event.seq > told):
                    # One was lost on its way: what is stored has it.
                    session, stored = await _history(request, session_id, told)
                    for written in stored:
                        yield written
                    told = max(told, session.last_seq)
                elif event.type not in FOR_THE_SPEAKER | {"head"} and not 0 < event.seq <= told:
                    yield _written(event)
                    told = max(told, event.seq)
                if event.type == "closed":
                    return
            if reader.feed.is_overflowing:
                return  # who comes back reads on from the last event
    finally:
        reader.close()


async def _history(
    request: ApiRequest, session_id: UUID, after_seq: int
) -> tuple[LiveSession, list[bytes]]:
    def read() -> tuple[LiveSession, list[bytes]]:
        session = _read(request, session_id)
        return session, list(_stored(session, after_seq))

    history: tuple[LiveSession, list[bytes]] = await database_sync_to_async(read)()
    return history


def _stored(session: LiveSession, after_seq: int) -> Iterator[bytes]:
    for event in sorted(history_after(session, after_seq), key=lambda event: event.seq or 0):
        yield _written(CaptionEvent.parse(encode(event).encode()))


def _open(request: ApiRequest, session_id: UUID) -> LiveSession:
    session = selectors.access_live_session_by_id(request.auth, session_id)
    record_act(act=Act.VIEWED, actor=request.auth, on=session)
    return session


def _read(request: ApiRequest, session_id: UUID) -> LiveSession:
    """As the database has it now. Raises NotFoundError, NotAuthenticatedError."""
    user: User
    if "Authorization" in request.headers:
        user = authenticate(request, scope=Scope.LIVE_READ)
    else:
        user = user_of_session(request.session.session_key)
    return selectors.access_live_session_by_id(user, session_id)


def _written(event: CaptionEvent) -> bytes:
    number = f"id: {event.seq}\n" if event.seq else ""
    return f"{number}event: {event.type}\ndata: {event.text}\n\n".encode()


def _problem(reader: CaptionReader) -> bytes:
    problem = reader.problem or TryLaterError()
    data = json.dumps({"type": "error", "code": problem.code, "reason": problem.text})
    return f"event: error\ndata: {data}\n\n".encode()


def _last_event_id(request: ApiRequest) -> int:
    value = request.headers.get("Last-Event-ID", "")
    if not value:
        return 0
    if not (value.isascii() and value.isdigit() and len(value) < 11 and int(value) <= MOST_SEQ):
        raise InvalidInputError("Last-Event-ID is the id of an event.")
    return int(value)
