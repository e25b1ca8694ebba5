"""What an administrator opens of somebody else's: the question why, the hour, the owner's view."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from tests.fakes.live import make_session
from tests.fakes.pages import make_recording
from tests.fakes.shares import open_for, share
from transcription.models import LiveSession, OpenedContent, Recording
from webapp.accounts.models import Act, AuditEntry, User

ClientOf = Callable[[User | None], Client]
Thing = Recording | LiveSession

WHY = "Alice asked why it is empty"


@pytest.fixture(params=["recordings", "live"])
def thing(request: pytest.FixtureRequest, alice: User) -> Thing:
    if request.param == "recordings":
        return make_recording(alice, "Planning", "Good morning.")
    return make_session(alice, title="Planning")


def kind_of(thing: Thing) -> str:
    return "recordings" if isinstance(thing, Recording) else "live"


def page_of(thing: Thing, part: str = "") -> str:
    return f"/{kind_of(thing)}/{thing.id}/{part}"


def open_page(thing: Thing, part: str = "") -> str:
    return f"/administration/open/{kind_of(thing)}/{thing.id}/{part}"


def test_its_page_asks_an_administrator_why(
    thing: Thing, administrator: User, client_of: ClientOf
) -> None:
    client = client_of(administrator)
    answer = client.get(page_of(thing), follow=True)
    assert answer.redirect_chain == [(open_page(thing), 302)]
    page = answer.content.decode()
    assert "Planning" in page
    assert "Good morning." not in page
    assert not OpenedContent.objects.exists()


def test_with_a_reason_it_opens_says_so_and_closes(
    thing: Thing, administrator: User, client_of: ClientOf
) -> None:
    client = client_of(administrator)
    answer = client.post(open_page(thing), {"reason": WHY})
    assert answer["Location"] == page_of(thing)
    page = client.get(page_of(thing)).content.decode()
    assert "Close it now" in page
    assert page_of(thing, "share/") not in page
    assert client.get(open_page(thing))["Location"] == page_of(thing)
    assert AuditEntry.objects.filter(act=Act.OPENED, detail__reason=WHY).count() == 1
    assert client.post(open_page(thing, "close/"))["Location"] == "/administration/"
    assert client.get(page_of(thing))["Location"] == open_page(thing)


def test_a_recording_is_put_on_hold_without_being_opened(
    alice: User, administrator: User, client_of: ClientOf
) -> None:
    client, recording = client_of(administrator), make_recording(alice, "Planning", "Good morning.")
    assert (
        f'name="recording" value="{recording.id}"'
        in client.get(open_page(recording)).content.decode()
    )
    asked = {"recording": str(recording.id), "reason": "Case 7"}
    assert client.post("/administration/retention/hold/", asked).status_code == 302
    page = client.get(open_page(recording)).content.decode()
    assert "The reason: Case 7" in page
    assert "Put on hold" not in page
    assert not OpenedContent.objects.exists()


@pytest.mark.parametrize("reason", ["", "  \n", "abc"])
def test_without_a_reason_it_stays_closed(
    thing: Thing, administrator: User, client_of: ClientOf, reason: str
) -> None:
    answer = client_of(administrator).post(open_page(thing), {"reason": reason})
    assert answer.status_code == 400
    assert "Say in a few words" in answer.content.decode()
    assert not OpenedContent.objects.exists()


def test_the_owner_sees_who_opened_it_and_why_and_readers_do_not(
    thing: Thing, alice: User, bob: User, administrator: User, client_of: ClientOf
) -> None:
    share(thing, with_=bob)
    client_of(administrator).post(open_page(thing), {"reason": "<b>A look</b>"})
    where = page_of(thing) if isinstance(thing, Recording) else page_of(thing, "share/")
    owners = client_of(alice).get(where).content.decode()
    assert "Opened by an administrator" in owners
    assert "&lt;b&gt;A look" in owners
    assert "A look" not in client_of(bob).get(page_of(thing)).content.decode()


@pytest.mark.parametrize("who", ["alice", "bob", "charlie"])
def test_nobody_else_opens_anything(
    who: str, request: pytest.FixtureRequest, thing: Thing, bob: User, client_of: ClientOf
) -> None:
    share(thing, with_=bob, can_edit=True)
    client = client_of(request.getfixturevalue(who))
    assert client.get(open_page(thing)).status_code == 404
    assert client.post(open_page(thing), {"reason": WHY}).status_code == 404
    assert client.post(open_page(thing, "close/")).status_code == 404
    assert client_of(None).get(open_page(thing)).status_code == 302
    assert not OpenedContent.objects.exists()


def test_what_lies_in_the_trash_stays_closed(
    alice: User, administrator: User, client_of: ClientOf
) -> None:
    recording = make_recording(alice, "Planning", trashed_at=timezone.now())
    client = client_of(administrator)
    assert client.get(open_page(recording)).status_code == 404
    assert client.post(open_page(recording), {"reason": WHY}).status_code == 404
    assert not OpenedContent.objects.exists()


def test_one_s_own_and_what_is_shared_need_no_opening(
    thing: Thing, administrator: User, client_of: ClientOf
) -> None:
    share(thing, with_=administrator)
    client = client_of(administrator)
    assert client.get(page_of(thing)).status_code == 200
    assert client.get(open_page(thing))["Location"] == page_of(thing)


def test_what_is_opened_is_changed_by_nobody(
    alice: User, administrator: User, client_of: ClientOf
) -> None:
    recording = make_recording(alice, "Planning", "Good morning.")
    open_for(administrator, recording)
    client = client_of(administrator)
    for act in ("rename/", "speakers/", "terms/", "track/", "cancel/", "retry/", "share/add/"):
        assert client.post(page_of(recording, act), {"title": "Mine"}).status_code == 404, act
    recording.refresh_from_db()
    assert recording.title == "Planning"
