"""The tools' socket: a token in hello, a session made for it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from tests.fakes.live import Page, engine_by_hand, hello, make_session
from transcription.models import LiveSession, LiveState, Visibility
from webapp.accounts.models import ApiToken, Scope, User
from webapp.accounts.tokens import revoke_token

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def token(alice: User) -> str:
    return ApiToken.issue(user=alice, name="tool")[1]


async def connected() -> Page:
    """A tool names no origin."""
    page = Page("/ws/v1/stream", None, origin="")
    assert await page.connect()
    return page


async def test_tool_gets_a_session_of_its_own(token: str, alice: User) -> None:
    async with engine_by_hand():
        page = await connected()
        await page.say(**hello(token=token, title="Phone call 12", language="en"))
        ready = await page.hear("ready")
        session = await LiveSession.objects.select_related("owner").aget()
        assert (str(session.id), session.title) == (ready["session"], "Phone call 12")
        assert (session.owner, session.visibility) == (alice, Visibility.PRIVATE)
        assert session.state == LiveState.LIVE
        await page.leave()


async def test_tool_comes_back_to_its_session(token: str) -> None:
    async with engine_by_hand():
        first = await connected()
        await first.say(**hello(token=token))
        session_id = (await first.hear("ready"))["session"]
        await first.leave()
        second = await connected()
        await second.say(**hello(token=token, session=session_id))
        assert (await second.hear("ready"))["session"] == session_id
        assert await LiveSession.objects.acount() == 1
        await second.leave()


@pytest.mark.parametrize("secret", ["", "tr_unknown"])
async def test_unknown_token_is_refused(secret: str, alice: User) -> None:
    page = await connected()
    await page.say(**hello(token=secret))
    code, error = await page.closing()
    assert (code, error and error["code"]) == (4401, "not_authenticated")
    assert not await LiveSession.objects.aexists()
    await page.leave()


async def test_expired_token_is_refused(alice: User) -> None:
    past = timezone.now() - timedelta(seconds=1)
    _, secret = await sync_to_async(ApiToken.issue)(user=alice, name="old", expires_at=past)
    page = await connected()
    await page.say(**hello(token=secret))
    assert (await page.closing())[0] == 4401
    await page.leave()


async def test_token_that_may_only_read_speaks_into_nothing(alice: User) -> None:
    _, secret = await sync_to_async(ApiToken.issue)(
        user=alice, name="reader", scopes=[Scope.LIVE_READ]
    )
    page = await connected()
    await page.say(**hello(token=secret))
    code, error = await page.closing()
    assert (code, error and error["code"]) == (4403, "missing_scope")
    assert not await LiveSession.objects.aexists()
    await page.leave()


async def test_token_of_another_person_opens_nothing_of_alice(token: str, charlie: User) -> None:
    _, strange = await sync_to_async(ApiToken.issue)(user=charlie, name="tool")
    async with engine_by_hand():
        first = await connected()
        await first.say(**hello(token=token))
        session_id = (await first.hear("ready"))["session"]
        second = await connected()
        await second.say(**hello(token=strange, session=session_id))
        assert (await second.closing())[0] == 4404
        await first.leave()
        await second.leave()


@pytest.mark.parametrize("session_id", ["not-a-uuid", "00000000-0000-0000-0000-000000000000"])
async def test_unknown_session_is_not_found(token: str, session_id: str) -> None:
    page = await connected()
    await page.say(**hello(token=token, session=session_id))
    assert (await page.closing())[0] == 4404
    await page.leave()


async def test_refused_stream_leaves_no_session(token: str) -> None:
    page = await connected()
    await page.say(**hello(token=token))
    assert (await page.closing())[0] == 4503
    await page.leave()
    assert not await LiveSession.objects.aexists()


async def test_socket_closes_when_its_token_is_taken_back(token: str, alice: User) -> None:
    async with engine_by_hand():
        page = await connected()
        await page.say(**hello(token=token))
        await page.hear("ready")
        await ApiToken.objects.filter(user=alice).adelete()
        assert (await page.closing())[0] == 4401
        await page.leave()


async def test_socket_closes_when_its_token_is_revoked(alice: User) -> None:
    token, secret = await sync_to_async(ApiToken.issue)(user=alice, name="tool")
    async with engine_by_hand():
        page = await connected()
        await page.say(**hello(token=secret))
        await page.hear("ready")
        await sync_to_async(revoke_token)(token=token, revoked_by=alice)
        assert (await page.closing())[0] == 4401
        await page.leave()


async def test_refused_stream_leaves_a_session_that_was_not_made_for_it(
    token: str, alice: User
) -> None:
    session = await sync_to_async(make_session)(alice)
    page = await connected()
    await page.say(**hello(token=token, session=str(session.id)))
    assert (await page.closing())[0] == 4503
    await page.leave()
    assert await LiveSession.objects.aexists()


async def test_socket_closes_when_the_owner_is_disabled(token: str, alice: User) -> None:
    async with engine_by_hand():
        page = await connected()
        await page.say(**hello(token=token))
        await page.hear("ready")
        alice.is_active = False
        await sync_to_async(alice.save)()
        assert (await page.closing())[0] == 4401
        await page.leave()


async def test_tool_changes_the_mode_of_its_session(token: str) -> None:
    async with engine_by_hand():
        page = await connected()
        await page.say(**hello(token=token, mode_ms=160))
        await page.hear("ready")
        await page.say(type="set_mode", mode_ms=560)
        event = await page.hear("mode")
        assert (event["mode_ms"], event["packet_ms"]) == (560, 200)
        assert (await LiveSession.objects.aget()).mode_ms == 560
        await page.leave()
