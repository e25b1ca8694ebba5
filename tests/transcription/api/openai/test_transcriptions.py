"""Transcriptions for OpenAI's own client, through the real ASGI application."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from asgiref.testing import ApplicationCommunicator
from openai import AsyncOpenAI
from pytest_django.fixtures import Settings

from asr_engine.backends.scripted import encode_blocks, script, script_text
from tests.fakes.audio import wav_bytes
from tests.fakes.road import Road, open_road
from transcription.api.openai import hearing
from transcription.api.openai.hearing import Hearing
from transcription.formats.documents import pieces_of
from transcription.models import Job, Recording, Upload
from transcription.services import jobs
from webapp.accounts.models import ApiToken, AuditEntry, Scope, User
from webapp.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)

BLOCKS = script(12, utterance_words=6)
SPOKEN = script_text(BLOCKS)
TALK = ("Besprechung.wav", wav_bytes(encode_blocks(BLOCKS)))


@pytest.fixture
def road(monkeypatch: pytest.MonkeyPatch) -> Iterator[Road]:
    monkeypatch.setattr(hearing, "PAUSES_S", (0.05,))
    with open_road(monkeypatch) as road:
        yield road


@pytest.fixture
def secret(transactional_db: None, alice: User) -> str:
    _, secret = ApiToken.issue(user=alice, name="tool", scopes=[Scope.TRANSCRIBE])
    return secret


@pytest.fixture
async def client(secret: str) -> AsyncIterator[AsyncOpenAI]:
    """OpenAI's client, whose server is this application."""
    transport = httpx2.ASGITransport(app=application)
    async with AsyncOpenAI(
        api_key=secret,
        base_url="http://localhost/v1",
        http_client=httpx2.AsyncClient(transport=transport),
        max_retries=0,
    ) as client:
        yield client


def nothing_is_left(media_dir: Path) -> bool:
    rows = Upload.objects.exists() or Recording.objects.exists() or Job.objects.exists()
    return not rows and not [path for path in media_dir.rglob("*") if path.is_file()]


async def in_database(function: Any, *arguments: Any) -> Any:
    return await asyncio.to_thread(function, *arguments)


async def test_the_text_is_answered_and_nothing_is_kept(
    client: AsyncOpenAI, road: Road, media_dir: Path
) -> None:
    answer = await client.audio.transcriptions.create(model="whisper-1", file=TALK)
    assert answer.text == SPOKEN
    assert answer.usage is not None
    assert answer.usage.type == "duration"
    assert await in_database(nothing_is_left, media_dir)
    acts = [act async for act in AuditEntry.objects.values_list("act", flat=True)]
    assert {"created", "deleted"} <= set(acts)


async def test_a_verbose_answer_has_segments_and_words_in_seconds(
    client: AsyncOpenAI, road: Road
) -> None:
    answer = await client.audio.transcriptions.create(
        model="transcribe",
        file=TALK,
        language="en",
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert (answer.text, answer.language) == (SPOKEN, "english")
    assert answer.duration == pytest.approx(len(BLOCKS) / 10, abs=0.2)
    assert answer.words is not None
    assert " ".join(word.word for word in answer.words) == SPOKEN
    first = answer.words[0]
    assert (first.start, first.end) == pytest.approx((1.2, 1.3), abs=0.05)
    assert answer.segments is not None
    assert "".join(segment.text for segment in answer.segments) == SPOKEN
    ends = [0.0, *(segment.end for segment in answer.segments)]
    assert all(
        end <= each.start < each.end for end, each in zip(ends, answer.segments, strict=False)
    )


async def test_only_what_is_asked_for_is_in_a_verbose_answer(
    client: AsyncOpenAI, road: Road
) -> None:
    only_words = await client.audio.transcriptions.create(
        model="transcribe-draft",
        file=TALK,
        response_format="verbose_json",
        timestamp_granularities=["word"],
    )
    assert only_words.words
    assert only_words.segments is None


@pytest.mark.parametrize(
    ("response_format", "begin", "mark"),
    [("text", "w0 w1", ""), ("srt", "1\n00:00:0", " --> "), ("vtt", "WEBVTT\n\n00:00:0", " --> ")],
)
async def test_texts_and_subtitles_are_answered_as_they_are(
    response_format: Any, begin: str, mark: str, client: AsyncOpenAI, road: Road
) -> None:
    answer = await client.audio.transcriptions.create(
        model="whisper-1", file=TALK, response_format=response_format
    )
    text = str(answer)
    assert text.startswith(begin)
    assert mark in text
    assert " ".join(part for part in text.split() if part.startswith("w")) == SPOKEN


async def test_a_stream_tells_what_is_final_and_ends_with_all_of_it(
    client: AsyncOpenAI, road: Road, media_dir: Path
) -> None:
    stream = await client.audio.transcriptions.create(model="whisper-1", file=TALK, stream=True)
    events = [event async for event in stream]
    assert [event.type for event in events[-1:]] == ["transcript.text.done"]
    deltas = [event.delta for event in events if event.type == "transcript.text.delta"]
    assert "".join(deltas) == SPOKEN
    assert getattr(events[-1], "text", "") == SPOKEN
    assert await in_database(nothing_is_left, media_dir)


async def test_text_comes_while_the_rest_is_still_heard(
    client: AsyncOpenAI, road: Road, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the refine pass stores it, never taken back."""
    read, told = threading.Semaphore(0), []
    finish, read_on = jobs.finish_job, Hearing._read_on

    def finish_when_read(**arguments: Any) -> None:
        assert read.acquire(timeout=20)
        assert read.acquire(timeout=20)  # one look may have begun before all was stored
        finish(**arguments)

    def read_and_tell(self: Hearing) -> bool:
        is_done = read_on(self)
        told.append((is_done, "".join(pieces_of(self._segments))))
        if told[-1][1]:
            read.release()
        return is_done

    monkeypatch.setattr(jobs, "finish_job", finish_when_read)
    monkeypatch.setattr(Hearing, "_read_on", read_and_tell)
    stream = await client.audio.transcriptions.create(model="whisper-1", file=TALK, stream=True)
    deltas = [event.delta async for event in stream if event.type == "transcript.text.delta"]
    assert (False, SPOKEN) in told
    assert "".join(deltas) == SPOKEN


async def test_silence_is_an_empty_text(client: AsyncOpenAI, road: Road) -> None:
    silence = ("silence.wav", wav_bytes(encode_blocks([None] * 30)))
    answer = await client.audio.transcriptions.create(model="whisper-1", file=silence)
    assert answer.text == ""


async def test_what_is_no_audio_is_refused_in_words(
    client: AsyncOpenAI, road: Road, media_dir: Path
) -> None:
    for is_streamed in (False, True):
        with pytest.raises(openai.UnprocessableEntityError) as refusal:
            await client.audio.transcriptions.create(
                model="whisper-1", file=("notes.wav", b"notes" * 99), stream=is_streamed
            )
        assert "not an audio or video recording" in refusal.value.message
        assert refusal.value.type == "invalid_request_error"
    assert await in_database(nothing_is_left, media_dir)


async def test_a_site_that_keeps_them_says_until_when(
    client: AsyncOpenAI, road: Road, settings: Settings
) -> None:
    settings.SITE = settings.SITE.model_copy(update={"openai_keep_hours": 2.0})
    await client.audio.transcriptions.create(model="whisper-1", file=TALK)
    recording = await Recording.objects.select_related("owner").aget()
    assert (recording.title, recording.owner.name) == ("Besprechung", "Alice")
    assert recording.expires_at is not None
    assert (recording.expires_at - recording.created_at).total_seconds() == pytest.approx(
        7200, abs=60
    )


async def test_a_transcription_that_somebody_cancels_is_told(
    client: AsyncOpenAI, road: Road, media_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = jobs.submit_job

    def submit_cancelled(**arguments: Any) -> Job:
        return jobs.cancel_job(job=submit(**arguments), cancelled_by=None)

    monkeypatch.setattr(jobs, "submit_job", submit_cancelled)
    with pytest.raises(openai.APIStatusError) as refusal:
        await client.audio.transcriptions.create(model="whisper-1", file=TALK)
    assert (refusal.value.status_code, refusal.value.code) == (410, "cancelled")
    assert await in_database(nothing_is_left, media_dir)


@pytest.mark.parametrize("keep_hours", [0.0, 2.0])
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_client_that_goes_is_not_waited_for(
    is_streamed: bool,
    keep_hours: float,
    secret: str,
    road: Road,
    media_dir: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its recording goes with it, unless the site keeps them: then the road goes on."""
    settings.SITE = settings.SITE.model_copy(update={"openai_keep_hours": keep_hours})
    accepted = threading.Event()
    submit = jobs.submit_job

    def submit_and_stop(**arguments: Any) -> Job:
        job = submit(**arguments)
        road.is_open.clear()
        accepted.set()
        return job

    monkeypatch.setattr(jobs, "submit_job", submit_and_stop)
    body, content_type = form(file=TALK, model="whisper-1", stream=str(is_streamed).lower())
    communicator = ApplicationCommunicator(application, scope(secret, content_type, len(body)))
    await communicator.send_input({"type": "http.request", "body": body})
    assert await asyncio.to_thread(accepted.wait, 20)
    if is_streamed:
        begun = await communicator.receive_output(timeout=20)
        assert begun["status"] == 200
    await communicator.send_input({"type": "http.disconnect"})
    await communicator.wait(timeout=20)
    assert await in_database(nothing_is_left, media_dir) == (not keep_hours)
    road.is_open.set()


def form(file: tuple[str, bytes], **fields: str) -> tuple[bytes, str]:
    """(body, content type)."""
    request = httpx2.Request("POST", "http://localhost/", data=fields, files={"file": file})
    return request.read(), request.headers["Content-Type"]


def scope(secret: str, content_type: str, length_bytes: int) -> dict[str, Any]:
    headers = {
        "content-length": str(length_bytes),
        "host": "localhost",
        "authorization": f"Bearer {secret}",
        "content-type": content_type,
    }
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/audio/transcriptions",
        "query_string": b"",
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }


# What is refused before anything is stored --------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"response_format": "docx"}, "invalid_input"),
        ({"language": "Klingon"}, "invalid_input"),
        ({"stream": "perhaps"}, "invalid_input"),
        ({"stream": "true", "response_format": "srt"}, "invalid_input"),
        ({"timestamp_granularities[]": "letter"}, "invalid_input"),
        ({"model": "parrot"}, "model_not_found"),
    ],
)
async def test_what_makes_no_sense_is_refused_in_words(
    fields: dict[str, str], code: str, secret: str, sent: list[tuple[str, ...]], media_dir: Path
) -> None:
    answer = await post(secret, data={"model": "whisper-1", **fields}, files={"file": TALK})
    assert answer.status_code == (404 if code == "model_not_found" else 400)
    assert answer.json()["error"]["code"] == answer.json()["code"] == code
    assert answer.json()["error"]["message"]
    assert sent == []
    assert await in_database(nothing_is_left, media_dir)


@pytest.mark.parametrize(
    "request_", [{"data": {"model": "whisper-1"}}, {"json": {"file": "x"}}, {"content": b"--x"}]
)
async def test_a_body_without_a_file_is_refused(request_: dict[str, Any], secret: str) -> None:
    answer = await post(secret, **request_)
    assert answer.status_code == 400
    assert "`file`" in answer.json()["error"]["message"]


async def test_fields_that_steer_their_models_are_taken(client: AsyncOpenAI, road: Road) -> None:
    answer = await client.audio.transcriptions.create(
        model="gpt-4o-mini-transcribe",
        file=TALK,
        prompt="Names: Helstone.",
        temperature=0.2,
        include=["logprobs"],
        chunking_strategy="auto",
    )
    assert answer.text == SPOKEN


async def post(secret: str, **request: Any) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return await client.post("/v1/audio/transcriptions", headers=headers, **request)


async def test_anonymous_and_other_tokens_are_refused(alice: User, sent: list[Any]) -> None:
    def reader() -> str:
        return ApiToken.issue(user=alice, name="reader", scopes=[Scope.RECORDINGS_READ])[1]

    for token, status in (("", 401), ("tr_nonsense", 401), (await in_database(reader), 403)):
        answer = await post(token, data={"model": "whisper-1"}, files={"file": TALK})
        assert answer.status_code == status
        assert answer.json()["error"]["message"]
    assert sent == []


async def test_another_method_is_refused(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as refusal:
        await client.get("/audio/transcriptions", cast_to=object)
    assert refusal.value.status_code == 405
    assert json.loads(refusal.value.response.content)["code"] == "method_not_allowed"


async def test_rights_that_end_while_it_waits_end_the_answer(
    client: AsyncOpenAI, road: Road, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = jobs.finish_job

    def disable_and_finish(**arguments: Any) -> None:
        User.objects.filter(pk=alice.pk).update(is_active=False)
        finish(**arguments)

    monkeypatch.setattr(jobs, "finish_job", disable_and_finish)
    with pytest.raises(openai.APIError):
        await client.audio.transcriptions.create(model="whisper-1", file=TALK)


# Models -------------------------------------------------------------------------------------------


async def test_models_are_listed_and_read(client: AsyncOpenAI) -> None:
    names = [model.id async for model in client.models.list()]
    assert {"transcribe", "transcribe-draft", "whisper-1"} <= set(names)
    assert (await client.models.retrieve("whisper-1")).id == "whisper-1"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("parrot/large")
