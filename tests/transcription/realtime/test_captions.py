"""The captions socket: rights, history, no event twice."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from tests.fakes.live import Page, final, log_in, make_person, make_session
from transcription.models import LiveSession, Visibility
from transcription.services import live_sessions

pytestmark = pytest.mark.django_db(transaction=True)


def prepared(visibility: Visibility = Visibility.PRIVATE) -> tuple[LiveSession, Page]:
    alice = make_person("alice")
    session = make_session(alice, visibility=visibility)
    return session, Page(f"/ws/v1/live/{session.id}/captions", log_in(alice))


async def test_late_joiner_gets_the_history_in_order() -> None:
    session, page = await sync_to_async(prepared)()
    for number in range(3):
        await sync_to_async(live_sessions.record_final)(event=final(session, number, f"w{number}"))
    assert await page.connect()
    ready = await page.hear("ready")
    assert (ready["seq"], ready["title"]) == (3, "Weekly meeting")
    history = await page.hear("history")
    assert [event["text"] for event in history["events"]] == ["w0", "w1", "w2"]
    assert (await page.hear("head"))["seq"] == 3
    await page.leave()
