"""Limits of captures, readers and messages: who meets one is told which, and by a code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from tests.fakes.live import Page, engine_by_hand, hello, log_in, make_session, servers
from transcription.errors import TooManySessionsError, TooManyViewersError
from transcription.feeds import limits, places
from transcription.feeds.places import Limit, Places
from transcription.models import LiveSession, Visibility
from transcription.realtime import allowance, border
from transcription.realtime.allowance import Bucket
from transcription.services import live_sessions
from webapp.accounts.models import ApiToken, User
from webapp.config import site_settings

pytestmark = pytest.mark.django_db(transaction=True)


def limited(monkeypatch: pytest.MonkeyPatch, **values: int) -> None:
    settings = site_settings().model_copy(update=values)
    monkeypatch.setattr(limits, "site_settings", lambda: settings)


async def empty_places() -> None:
    async with servers() as (broker, _):
        if keys := await broker.keys("places:*"):
            await broker.delete(*keys)


@pytest.fixture(autouse=True)
async def no_places_left_over() -> AsyncIterator[None]:
    """Nor those of an earlier test, which run out only after a while."""
    await empty_places()
    yield
    await empty_places()


async def open_page(session: LiveSession, person: User, kind: str) -> Page:
    browser = await sync_to_async(log_in)(person)
    page = Page(f"/ws/v1/live/{session.id}/{kind}", browser)
    assert await page.connect()
    return page


async def refusal(page: Page) -> tuple[int, str, str]:
    code, error = await page.closing()
    assert error is not None
    await page.leave()
    return code, error["code"], error["reason"]


# Places -----------------------------------------------------------------------------------------


def room(most: int, what: str = "test") -> Limit:
    return Limit(what, most, TooManyViewersError())


async def test_fifty_at_once_to_twenty_places_are_twenty() -> None:
    """Of two processes: each has a book of its own, the broker counts."""
    async with servers() as (broker, _):
        books = [Places(broker), Places(broker)]
        answers = await asyncio.gather(
            *(books[number % 2].take(f"n{number}", room(20)) for number in range(50)),
            return_exceptions=True,
        )
        refused = [answer for answer in answers if isinstance(answer, TooManyViewersError)]
        assert len(refused) == 30
        for book in books:
            await book.close()


async def test_place_that_is_given_back_is_free() -> None:
    async with servers() as (broker, _):
        book = Places(broker)
        await book.take("a", room(1))
        with pytest.raises(TooManyViewersError):
            await book.take("b", room(1))
        await book.take("a", room(1))  # who has it already, comes back
        await book.give_back("a", room(1))
        await book.take("b", room(1))
        await book.close()


async def test_full_limit_takes_no_place_under_the_others() -> None:
    async with servers() as (broker, _):
        book = Places(broker)
        await book.take("a", room(5, "wide"), room(1, "narrow"))
        with pytest.raises(TooManyViewersError):
            await book.take("b", room(5, "wide"), room(1, "narrow"))
        assert await broker.zrange("places:wide", 0, -1) == [b"a"]
        await book.close()


async def test_places_of_a_process_that_died_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async with servers() as (broker, _):
        dead, alive = Places(broker), Places(broker)
        with monkeypatch.context() as patch:
            patch.setattr(places, "PLACE_TTL_MS", 0)  # gone with the millisecond
            await dead.take("a", room(1))
        await dead.close()
        await alive.take("b", room(1))
        assert await broker.zrange("places:test", 0, -1) == [b"b"]
        await alive.close()


async def test_held_places_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with servers() as (broker, _):
        book = Places(broker)
        await book.take("a", room(1))
        await book.take("a", room(1))  # a second socket of the same session takes over
        book.forget("a", room(1))
        await broker.pexpire("places:test", 50)
        await book.keep()
        assert await broker.pttl("places:test") > 1000
        await book.close()


# Captures and readers ---------------------------------------------------------------------------


async def test_capture_above_a_persons_limit_is_refused(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, max_sessions_per_person=1)
    sessions = [await sync_to_async(make_session)(alice) for _ in range(2)]
    other = await sync_to_async(make_session)(bob)
    async with engine_by_hand():
        first = await open_page(sessions[0], alice, "capture")
        await first.say(**hello())
        await first.hear("ready")
        second = await open_page(sessions[1], alice, "capture")
        await second.say(**hello())
        code, name, reason = await refusal(second)
        assert (code, name) == (4503, "too_many_sessions")
        assert "1 live session" in reason
        somebody_else = await open_page(other, bob, "capture")
        await somebody_else.say(**hello())
        await somebody_else.hear("ready")
        await somebody_else.leave()
        await first.leave()


async def test_capture_above_the_limit_of_all_is_refused_until_one_ends(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, max_sessions=1)
    session, other = [await sync_to_async(make_session)(person) for person in (alice, bob)]
    async with engine_by_hand():
        first = await open_page(session, alice, "capture")
        await first.say(**hello())
        await first.hear("ready")
        second = await open_page(other, bob, "capture")
        await second.say(**hello())
        assert (await refusal(second))[1] == "too_many_sessions"
        await first.leave()
        third = await open_page(other, bob, "capture")
        await third.say(**hello())
        await third.hear("ready")
        await third.leave()


async def test_page_that_comes_back_to_its_session_keeps_its_place(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, max_sessions=1, max_sessions_per_person=1)
    session = await sync_to_async(make_session)(alice)
    async with engine_by_hand():
        first = await open_page(session, alice, "capture")
        await first.say(**hello())
        await first.hear("ready")
        second = await open_page(session, alice, "capture")
        await second.say(**hello())
        await second.hear("ready")
        await first.leave()
        async with servers() as (broker, _):
            assert await broker.zcard("places:captures") == 1
        await second.leave()


@pytest.mark.parametrize("which", ["max_viewers", "max_viewers_per_session"])
async def test_reader_above_the_limit_is_refused_with_a_sentence(
    alice: User, bob: User, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, **{which: 1})
    session = await sync_to_async(make_session)(alice, visibility=Visibility.ORGANISATION)
    first = await open_page(session, bob, "captions")
    await first.hear("head")
    second = await open_page(session, alice, "captions")
    code, name, reason = await refusal(second)
    assert (code, name) == (4503, "too_many_viewers")
    assert "again" in reason
    await first.leave()
    third = await open_page(session, alice, "captions")
    await third.hear("head")
    await third.leave()


async def test_tool_above_its_owners_limit_is_refused(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, max_sessions_per_person=1)
    _, token = await sync_to_async(ApiToken.issue)(user=alice, name="tool")
    async with engine_by_hand():
        pages = [Page("/ws/v1/stream", None, origin="") for _ in range(2)]
        for page in pages:
            assert await page.connect()
            await page.say(**hello(token=token))
            if page is pages[0]:
                await page.hear("ready")
        assert (await refusal(pages[1]))[1] == "too_many_sessions"
        await pages[0].leave()


def test_person_with_enough_live_sessions_makes_no_other(
    alice: User, client_of: Callable[[User], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so, to its script too; one that was ended makes room."""
    settings = site_settings().model_copy(update={"max_sessions_per_person": 1})
    monkeypatch.setattr(live_sessions, "site_settings", lambda: settings)
    session = make_session(alice)
    live_sessions.start_live_session(session=session)
    client = client_of(alice)
    form = {"title": "", "language": "", "visibility": "private"}
    answer = client.post("/live/new/", form, headers={"accept": "application/json"})
    assert answer.status_code == 400
    assert "1 live session" in answer.json()["problems"][0]
    assert "1 live session" in client.post("/live/new/", form).content.decode()
    live_sessions.end_live_session(session=session)
    assert client.post("/live/new/", form).status_code == 302


# Messages and strangers -------------------------------------------------------------------------


async def test_messages_that_come_too_fast_close_the_socket(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "MESSAGE_BURST", 3.0)
    monkeypatch.setattr(allowance, "MESSAGE_RATE", 0.0)
    session = await sync_to_async(make_session)(alice)
    page = await open_page(session, alice, "captions")
    for _ in range(4):
        await page.say(type="refetch", after_seq=0)
    assert (await refusal(page))[:2] == (4429, "too_fast")


def test_bucket_fills_with_time() -> None:
    bucket = Bucket(0.0, size=2.0, rate=1.0)
    assert [bucket.take(1.0, now_s) for now_s in (0.0, 0.0, 0.5, 1.0)] == [True, True, False, True]


async def test_too_many_who_do_not_say_who_they_are_are_refused(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who does makes room for the next one."""
    monkeypatch.setattr(border, "MAX_STRANGERS", 1)
    _, token = await sync_to_async(ApiToken.issue)(user=alice, name="tool")
    async with engine_by_hand():
        first = Page("/ws/v1/stream", None, origin="")
        assert await first.connect()
        second = Page("/ws/v1/stream", None, origin="")
        assert await second.connect()
        assert (await refusal(second))[1] == "try_later"
        await first.say(**hello(token=token))
        await first.hear("ready")
        third = Page("/ws/v1/stream", None, origin="")
        assert await third.connect()
        await third.say(**hello(token="tr_unknown"))
        assert (await refusal(third))[1] == "not_authenticated"
        await first.leave()


def test_refusals_name_the_limit_that_was_met() -> None:
    assert "10 live sessions" in TooManySessionsError.of_person(10).text
    assert "7 people" in TooManyViewersError.of_session(7).text
