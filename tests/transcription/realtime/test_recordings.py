"""The socket of a recording's page: told of changes, closed with the rights of its reader."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels_redis.pubsub import RedisPubSubLoopLayer
from django.test import Client
from redis.exceptions import RedisError

from tests.fakes.live import Page
from tests.fakes.recordings import make_recording
from transcription.models import Recording
from transcription.realtime import border
from transcription.realtime import recordings as socket
from transcription.services import recordings, sharing, trash
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)
ClientOf = Callable[[User | None], Client]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(border, "RIGHTS_SETTLE_S", 0.0)
    monkeypatch.setattr(socket, "QUIET_S", 0.05)


@pytest.fixture
def recording(transactional_db: None, alice: User) -> Recording:
    return make_recording(alice)


async def open_page(client: Client, recording_id: object) -> Page:
    page = Page(f"/ws/v1/recordings/{recording_id}", client)
    assert await page.connect()
    return page


async def test_the_owner_is_told_of_changes(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    page = await open_page(await sync_to_async(client_of)(alice), recording.id)
    await page.hear("changed")  # what happened before it was open
    await sync_to_async(recordings.rename_recording)(
        recording=recording, title="New", renamed_by=alice
    )
    await page.hear("changed")
    await page.leave()


async def test_many_changes_are_told_together_and_the_last_is_not_lost(
    alice: User, client_of: ClientOf, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await open_page(await sync_to_async(client_of)(alice), recording.id)
    await page.hear("changed")
    for number in range(20):
        await sync_to_async(recordings.rename_recording)(
            recording=recording, title=f"T{number}", renamed_by=alice
        )
    told = 0
    with suppress(TimeoutError):
        while True:
            message = await page.socket.receive_output(timeout=0.5)
            assert json.loads(message["text"]) == {"type": "changed"}
            told += 1
    assert 1 <= told < 20


async def test_strangers_and_administrators_are_turned_away(
    charlie: User, administrator: User, client_of: ClientOf, recording: Recording
) -> None:
    for stranger in (charlie, administrator):
        page = await open_page(await sync_to_async(client_of)(stranger), recording.id)
        assert (await page.closing())[0] == 4404


async def test_anonymous_and_unknown_are_turned_away(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    page = Page(f"/ws/v1/recordings/{recording.id}", None)
    assert await page.connect()
    assert (await page.closing())[0] == 4401
    page = await open_page(await sync_to_async(client_of)(alice), uuid4())
    assert (await page.closing())[0] == 4404


async def test_another_site_cannot_open_it(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    client = await sync_to_async(client_of)(alice)
    page = Page(f"/ws/v1/recordings/{recording.id}", client, origin="http://elsewhere.example")
    assert not await page.connect()


async def test_log_out_closes_it(alice: User, client_of: ClientOf, recording: Recording) -> None:
    client = await sync_to_async(client_of)(alice)
    page = await open_page(client, recording.id)
    await page.hear("changed")
    await sync_to_async(client.logout)()
    # The test client flushes the session before it signals, a browser's log-out after.
    assert (await page.closing())[0] == 4401


async def test_disabling_a_person_closes_it(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    page = await open_page(await sync_to_async(client_of)(alice), recording.id)
    await page.hear("changed")
    alice.is_active = False
    await sync_to_async(alice.save)()
    assert (await page.closing())[0] == 4401


async def test_unsharing_closes_it_for_others_only(
    alice: User, bob: User, client_of: ClientOf, recording: Recording
) -> None:
    share = sync_to_async(partial(sharing.set_audience, thing=recording, set_by=alice))
    await share(is_organisation_wide=True)
    owners = await open_page(await sync_to_async(client_of)(alice), recording.id)
    readers = await open_page(await sync_to_async(client_of)(bob), recording.id)
    await asyncio.gather(owners.hear("changed"), readers.hear("changed"))
    await share(is_organisation_wide=False)
    assert (await readers.closing())[0] == 4404
    await sync_to_async(recordings.rename_recording)(
        recording=recording, title="Mine", renamed_by=alice
    )
    await owners.hear("changed")
    await owners.leave()


async def test_a_change_of_rights_that_nobody_announced_closes_it(
    alice: User,
    bob: User,
    client_of: ClientOf,
    recording: Recording,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(border, "RIGHTS_CHECK_S", 0.01)
    shared = Recording.objects.filter(id=recording.id)
    await shared.aupdate(is_organisation_wide=True)
    page = await open_page(await sync_to_async(client_of)(bob), recording.id)
    await page.hear("changed")
    await shared.aupdate(is_organisation_wide=False)
    assert (await page.closing())[0] == 4404


async def test_without_the_broker_it_is_closed_to_come_back(
    alice: User, client_of: ClientOf, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise RedisError

    monkeypatch.setattr(RedisPubSubLoopLayer, "group_add", away)
    page = await open_page(await sync_to_async(client_of)(alice), recording.id)
    assert (await page.closing())[0] == 4503
    await page.leave()


async def test_deleting_the_recording_closes_it(
    alice: User, client_of: ClientOf, recording: Recording
) -> None:
    page = await open_page(await sync_to_async(client_of)(alice), recording.id)
    await page.hear("changed")
    await sync_to_async(trash.delete_for_ever)(recording=recording, deleted_by=alice)
    assert (await page.closing())[0] == 4404
