"""REST v1: captions as they come, through the real application and a real broker."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from channels.db import database_sync_to_async

from asr_engine.protocol import ViewerEvent
from tests.fakes.asgi import Exchange
from tests.fakes.live import final, log_in, make_session, publish, servers
from transcription.errors import TooManyViewersError
from transcription.feeds import reader
from transcription.feeds.places import Limit
from transcription.models import LiveMarkKind, LiveSession, LiveState
from transcription.services import live_sessions, sharing
from webapp.accounts.models import ApiToken, Scope, User
from webapp.accounts.tokens import revoke_token

pytestmark = pytest.mark.django_db(transaction=True)

stored = database_sync_to_async(live_sessions.record_final)


def path_of(session: LiveSession) -> str:
    return f"/api/v1/live-sessions/{session.id}/captions/events"


def token_of(user: User, *scopes: Scope) -> dict[str, str]:
    _, secret = ApiToken.issue(user=user, name="tool", scopes=scopes or [Scope.LIVE_READ])
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture(autouse=True)
def sent_nothing(sent: list[tuple[str, ...]]) -> None:
    """Nothing reaches a queue."""


async def test_what_is_stored_comes_first_then_what_is_said(alice: User) -> None:
    session = await database_sync_to_async(make_session)(alice)
    headers = await database_sync_to_async(token_of)(alice)
    await stored(event=final(session, 0, "before"))
    async with Exchange(path_of(session), headers=headers) as exchange:
        assert exchange.status == 200
        assert exchange.headers["Content-Type"] == "text/event-stream"
        first = await exchange.event()
        assert (first["event"], first["id"]) == ("final", "1")
        assert json.loads(first["data"])["text"] == "before"
        await publish(
            ViewerEvent(type="partial", session=str(session.id), utterance=1, text="so f")
        )
        partial = await exchange.event()
        assert partial["event"] == "partial"
        assert "id" not in partial
        await say(session, 1, "so far")
        assert json.loads((await exchange.event("final"))["data"])["text"] == "so far"


async def test_who_comes_back_gets_nothing_twice_and_misses_nothing(alice: User) -> None:
    session = await database_sync_to_async(make_session)(alice)
    headers = await database_sync_to_async(token_of)(alice)
    for number, text in enumerate(("one", "two", "three")):
        await stored(event=final(session, number, text))
    back = {**headers, "last-event-id": "2"}
    async with Exchange(path_of(session), headers=back) as exchange:
        assert (await exchange.event())["id"] == "3"
        # Lost on its way: the next event shows that something is missing.
        await stored(event=final(session, 3, "four"))
        await say(session, 4, "five")
        assert [(await exchange.event())["id"], (await exchange.event())["id"]] == ["4", "5"]
        # Lost too, and nothing is said after it.
        await stored(event=final(session, 5, "six"))
        await publish(ViewerEvent(type="head", session=str(session.id), seq=6))
        assert (await exchange.event())["id"] == "6"


async def test_the_end_of_the_session_ends_the_stream(alice: User) -> None:
    session = await database_sync_to_async(make_session)(alice)
    headers = await database_sync_to_async(token_of)(alice)

    def end() -> Any:
        mark = live_sessions.record_mark(
            session_id=session.id,
            kind=LiveMarkKind.CLOSED,
            start_ms=0,
            end_ms=0,
            wall_at=session.created_at,
        )
        live_sessions.end_live_session(session=session)
        assert session.state == LiveState.ENDED
        return mark

    async with Exchange(path_of(session), headers=headers) as exchange:
        mark = await database_sync_to_async(end)()
        await publish(live_sessions.mark_event(mark))
        assert b"event: closed" in await exchange.rest()
    back = {**headers, "last-event-id": "1"}
    async with Exchange(path_of(session), headers=back) as again:
        assert again.status == 204


async def test_a_withdrawn_right_ends_the_stream(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "RIGHTS_SETTLE_S", 0.0)
    session = await database_sync_to_async(make_session)(alice)
    share = await database_sync_to_async(sharing.share_with)(
        thing=session, sharer=alice, with_=bob, can_edit=False
    )
    client = await database_sync_to_async(log_in)(bob)
    token = await database_sync_to_async(token_of)(bob)
    cookie = {"cookie": f"sessionid={client.cookies['sessionid'].value}"}
    async with (
        Exchange(path_of(session), headers=token) as by_token,
        Exchange(path_of(session), headers=cookie) as by_cookie,
    ):
        for exchange in (by_token, by_cookie):
            await it_listens(session, exchange)
        await database_sync_to_async(sharing.stop_sharing)(share=share, stopped_by=alice)
        for exchange in (by_token, by_cookie):
            problem = json.loads((await exchange.event("error"))["data"])
            assert problem["code"] == "not_found"
            await exchange.rest()


async def test_a_revoked_token_ends_the_stream(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "RIGHTS_SETTLE_S", 0.0)
    session = await database_sync_to_async(make_session)(alice)
    headers = await database_sync_to_async(token_of)(alice)
    async with Exchange(path_of(session), headers=headers) as exchange:
        await it_listens(session, exchange)
        token = await ApiToken.objects.aget()
        await database_sync_to_async(revoke_token)(token=token, revoked_by=alice)
        problem = json.loads((await exchange.event("error"))["data"])
        assert problem["code"] == "not_authenticated"


async def test_strangers_and_other_tokens_are_refused(alice: User, charlie: User) -> None:
    session = await database_sync_to_async(make_session)(alice)
    token = database_sync_to_async(token_of)
    own = await token(alice)
    for headers, status in (
        (await token(charlie), 404),
        (await token(alice, Scope.RECORDINGS_READ), 403),
        ({}, 401),
        ({**own, "last-event-id": "x"}, 400),
    ):
        async with Exchange(path_of(session), headers=headers) as exchange:
            assert exchange.status == status
            assert exchange.headers["Content-Type"] == "application/problem+json"


async def test_readers_are_counted_and_give_their_place_back(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await database_sync_to_async(make_session)(alice)
    headers = await database_sync_to_async(token_of)(alice)

    def one_only(session_id: str) -> tuple[Limit, ...]:
        return (Limit(f"viewers:{session_id}", 1, TooManyViewersError()),)

    monkeypatch.setattr(reader, "viewer_limits", one_only)
    async with Exchange(path_of(session), headers=headers) as first:
        assert first.status == 200
        async with Exchange(path_of(session), headers=headers) as second:
            assert second.status == 503
    async with asyncio.timeout(20):
        while await places_taken(session):  # noqa: ASYNC110  # of the broker, which tells no event
            await asyncio.sleep(0.01)
    async with Exchange(path_of(session), headers=headers) as third:
        assert third.status == 200


async def it_listens(session: LiveSession, exchange: Exchange) -> None:
    """What is said from now on arrives."""
    await publish(ViewerEvent(type="lag", session=str(session.id), behind_ms=1))
    await exchange.event("lag")


async def say(session: LiveSession, number: int, text: str) -> None:
    """As the recorder does: stored, then announced."""
    utterance = await stored(event=final(session, number, text))
    assert utterance is not None
    await publish(live_sessions.final_event(utterance))


async def places_taken(session: LiveSession) -> int:
    async with servers() as (broker, _):
        return int(await broker.zcard(f"places:viewers:{session.id}"))
