"""The views: a transcription while its client waits, whole or piece by piece, and the models.

A client that goes before it has its answer is not waited for: its recording is removed, with the
job that is under way, unless the site keeps what comes this way (`TRANSCRIBE_OPENAI_KEEP_HOURS`).
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import AsyncIterator
from typing import Final

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from transcription.api.authentication import authenticate
from transcription.api.openai.answers import write_answer, write_error_event, write_event
from transcription.api.openai.border import endpoint, in_thread, refusal
from transcription.api.openai.forms import UnknownModelError, read_form
from transcription.api.openai.hearing import Hearing
from transcription.api.openai.models import all_described, described, model_named
from transcription.formats.documents import pieces_of
from webapp.accounts.models import Scope, User

SIGN_OF_LIFE_S: Final = 15.0
"""A proxy closes what is silent for longer."""


@endpoint("GET")
async def list_models(request: HttpRequest, user: User) -> HttpResponseBase:
    return JsonResponse({"object": "list", "data": all_described()})


@endpoint("GET")
async def read_model(request: HttpRequest, user: User, name: str) -> HttpResponseBase:
    if model_named(name) is None:
        raise UnknownModelError("There is no such model.")
    return JsonResponse(described(name))


@endpoint("POST")
async def create_transcription(request: HttpRequest, user: User) -> HttpResponseBase:
    asked = await in_thread(read_form)(request)
    still_allowed = functools.partial(authenticate, request, scope=Scope.TRANSCRIBE)
    hearing = Hearing(user, still_allowed=still_allowed)
    is_handed_on = False
    try:
        await hearing.begin(asked)
        await hearing.accepted()
        if asked.is_streamed:
            answer = StreamingHttpResponse(_events(hearing), content_type="text/event-stream")
            answer["X-Accel-Buffering"] = "no"
            is_handed_on = True
            return answer
        body, media_type = write_answer(await hearing.heard(), asked)
        return HttpResponse(body, content_type=media_type)
    finally:
        if not is_handed_on:
            await hearing.end()


async def _events(hearing: Hearing) -> AsyncIterator[str]:
    """The text as it becomes final, never taken back, and all of it at the end."""
    told, told_at_s = "", time.monotonic()
    try:
        async for segments in hearing.growing():
            text = "".join(pieces_of(segments))
            if text != told:
                yield write_event("transcript.text.delta", delta=text[len(told) :])
            elif time.monotonic() - told_at_s > SIGN_OF_LIFE_S:
                yield ": waiting\n\n"
            else:
                continue
            told, told_at_s = text, time.monotonic()
        yield write_event("transcript.text.done", text=told)
    except Exception as error:  # noqa: BLE001 - the border: the status has been sent
        yield write_error_event(json.loads(refusal(error).content)["error"])
    finally:
        await hearing.end()
