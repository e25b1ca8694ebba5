"""Whatever ends a log-in closes the sockets that were opened with it, and no others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from allauth.usersessions.models import UserSession
from asgiref.sync import sync_to_async
from django.core.cache import cache
from django.test import Client

from tests.fakes.live import Page
from tests.fakes.pages import make_recording
from tests.fakes.people import PASSWORD, make_person
from transcription.models import Recording
from transcription.realtime import border
from webapp.accounts import people, teams
from webapp.accounts.models import Role, User

pytestmark = pytest.mark.django_db(transaction=True)
Act = Callable[[User, Client], object]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(border, "RIGHTS_SETTLE_S", 0.0)
    cache.clear()


@pytest.fixture
def recording(transactional_db: None, alice: User) -> Recording:
    return make_recording(alice)


def log_in(person: User) -> Client:
    client = Client()
    client.post("/accounts/login/", {"login": person.email, "password": PASSWORD})
    return client


async def open_page(client: Client, recording: Recording) -> Page:
    page = Page(f"/ws/v1/recordings/{recording.id}", client)
    assert await page.connect()
    await page.hear("changed")
    return page


def change_password(person: User, elsewhere: Client) -> None:
    new = "another long passphrase"
    elsewhere.post(
        "/accounts/password/change/",
        {"oldpassword": PASSWORD, "password1": new, "password2": new},
    )
    person.refresh_from_db()
    assert person.check_password(new)


ENDS: dict[str, Act] = {
    "disabled": lambda person, _: people.disable_person(person=person, disabled_by=None),
    "all sessions ended": lambda person, _: people.end_sessions(person=person, ended_by=None),
    "logged out from another browser": lambda _, other: other.post("/profile/sessions/end/"),
    "password changed in another browser": change_password,
    "made a service account": lambda person, _: (
        User.objects.filter(pk=person.pk).update(role=Role.SERVICE),
        people.end_sessions(person=person, ended_by=None),
    ),
}


@pytest.mark.parametrize("act", ENDS)
async def test_what_ends_a_log_in_closes_its_sockets(
    alice: User, recording: Recording, act: str
) -> None:
    here, elsewhere = await sync_to_async(log_in)(alice), await sync_to_async(log_in)(alice)
    page = await open_page(here, recording)
    await sync_to_async(ENDS[act])(alice, elsewhere)
    assert (await page.closing())[0] == 4401


async def test_one_browser_logged_out_leaves_the_others_open(
    alice: User, recording: Recording
) -> None:
    lost, kept = await sync_to_async(log_in)(alice), await sync_to_async(log_in)(alice)
    lost_page, kept_page = await open_page(lost, recording), await open_page(kept, recording)
    key = await sync_to_async(lambda: lost.session.session_key)()
    session = await UserSession.objects.aget(session_key=key)
    await sync_to_async(people.end_session)(session=session, ended_by=alice)
    assert (await lost_page.closing())[0] == 4401
    assert await kept_page.socket.receive_nothing(timeout=0.2)
    await kept_page.leave()


async def test_a_role_and_a_team_that_take_nothing_away_close_nothing(
    alice: User, recording: Recording
) -> None:
    administrator = await sync_to_async(User.objects.create_superuser)("admin@example.org")
    page = await open_page(await sync_to_async(log_in)(alice), recording)
    await sync_to_async(people.change_role)(
        person=alice, role=Role.ADMINISTRATOR, changed_by=administrator
    )
    team = await sync_to_async(teams.create_team)(name="Sales", created_by=administrator)
    await sync_to_async(teams.add_member)(team=team, person=alice, added_by=administrator)
    other = await sync_to_async(make_person)("Bob")
    await sync_to_async(people.disable_person)(person=other, disabled_by=administrator)
    assert await page.socket.receive_nothing(timeout=0.2)
    await page.leave()
