"""The owner's page of who reads recordings and captions: everybody, people, teams, and links."""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from tests.fakes.live import make_session
from tests.fakes.pages import make_recording
from tests.fakes.shares import make_team, share
from transcription.models import LiveSession, Recording, Share, ShareLink, Visibility
from transcription.services import share_links
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]
Thing = Recording | LiveSession


@pytest.fixture
def session(alice: User) -> LiveSession:
    return make_session(alice, title="Planning")


@pytest.fixture
def token(session: LiveSession) -> str:
    return share_links.create_share_link(thing=session, hours=24, made_by=session.owner)[1]


@pytest.fixture(params=["recordings", "live"])
def thing(request: pytest.FixtureRequest, alice: User) -> Thing:
    if request.param == "recordings":
        return make_recording(alice, "Planning", "Good morning.")
    return make_session(alice, title="Planning")


def page_of(thing: Thing, part: str = "") -> str:
    kind = "recordings" if isinstance(thing, Recording) else "live"
    return f"/{kind}/{thing.id}/{part}"


# People and teams ---------------------------------------------------------------------------------


def test_a_person_is_found_by_a_part_of_their_name_and_reads_from_then_on(
    thing: Thing, alice: User, bob: User, charlie: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    assert client_of(bob).get(page_of(thing)).status_code == 404
    found = client.get(page_of(thing, "share/"), {"q": "bO"}).content.decode()
    assert f'value="person.{bob.pk}"' in found
    assert charlie.email not in found
    answer = client.post(
        page_of(thing, "share/add/"), {"with": f"person.{bob.pk}", "right": "read"}, follow=True
    )
    assert answer.redirect_chain == [(page_of(thing, "share/"), 302)]
    assert "Bob can read this now." in answer.content.decode()
    assert client_of(bob).get(page_of(thing)).status_code == 200
    assert client_of(charlie).get(page_of(thing)).status_code == 404
    again = client.get(page_of(thing, "share/"), {"q": "bob"}).content.decode()
    assert f'value="person.{bob.pk}"' not in again
    assert again.count('value="bob"') == 1  # not in the search for recordings


def test_a_team_is_shared_with_changed_and_stopped(
    thing: Thing, alice: User, bob: User, client_of: ClientOf
) -> None:
    team = make_team("Sales", bob)
    client = client_of(alice)
    assert (
        f'value="team.{team.pk}"'
        in client.get(page_of(thing, "share/"), {"q": "sal"}).content.decode()
    )
    client.post(page_of(thing, "share/add/"), {"with": f"team.{team.pk}", "right": "edit"})
    stored = Share.objects.get()
    assert (stored.team, stored.can_edit) == (team, True)
    assert "May read and edit" in client.get(page_of(thing, "share/")).content.decode()
    client.post(f"/shares/{stored.id}/", {"right": "read"})
    stored.refresh_from_db()
    assert not stored.can_edit
    assert client_of(bob).get(page_of(thing)).status_code == 200
    answer = client.post(f"/shares/{stored.id}/stop/")
    assert answer["Location"] == page_of(thing, "share/")
    assert not Share.objects.exists()
    assert client_of(bob).get(page_of(thing)).status_code == 404


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"with": "person.1"},
        {"with": "person.0", "right": "read"},
        {"with": "team.0", "right": "read"},
        {"with": "person.x", "right": "read"},
        {"with": f"person.{'9' * 30}", "right": "read"},
        {"with": "owner.1", "right": "read"},
    ],
)
def test_nonsense_shares_nothing(
    thing: Thing, alice: User, client_of: ClientOf, said: dict[str, str]
) -> None:
    assert client_of(alice).post(page_of(thing, "share/add/"), said).status_code == 400
    assert not Share.objects.exists()


def test_nothing_is_shared_with_oneself_or_the_disabled(
    thing: Thing, alice: User, bob: User, client_of: ClientOf
) -> None:
    bob.is_active = False
    bob.save()
    client = client_of(alice)
    for person in (alice, bob):
        said = {"with": f"person.{person.pk}", "right": "read"}
        assert client.post(page_of(thing, "share/add/"), said).status_code == 400
        found = client.get(page_of(thing, "share/"), {"q": person.name}).content.decode()
        assert "Nobody else of that name" in found


@pytest.mark.parametrize("who", ["bob", "charlie", "administrator"])
def test_only_the_owner_shares(
    who: str, request: pytest.FixtureRequest, thing: Thing, bob: User, client_of: ClientOf
) -> None:
    """Bob may edit."""
    stored = share(thing, with_=bob, can_edit=True)
    client = client_of(request.getfixturevalue(who))
    said = {"with": f"person.{bob.pk}", "right": "read", "audience": "everybody", "hours": "24"}
    assert client.get(page_of(thing, "share/")).status_code == 404
    for address in (
        page_of(thing, "share/"),
        page_of(thing, "share/add/"),
        page_of(thing, "share/audience/"),
        f"/shares/{stored.id}/",
        f"/shares/{stored.id}/stop/",
    ):
        assert client.post(address, said).status_code == 404, address
    stored.refresh_from_db()
    assert stored.can_edit
    assert Share.objects.count() == 1
    assert not ShareLink.objects.exists()
    assert client_of(None).get(page_of(thing, "share/")).status_code == 302


def test_everybody_or_only_those_named(
    thing: Thing, alice: User, charlie: User, client_of: ClientOf
) -> None:
    client, reader = client_of(alice), client_of(charlie)
    for audience, status in (("everybody", 200), ("owner", 404)):
        answer = client.post(page_of(thing, "share/audience/"), {"audience": audience})
        assert answer["Location"] == page_of(thing, "share/")
        assert reader.get(page_of(thing)).status_code == status
    assert client.post(page_of(thing, "share/audience/"), {"audience": "?"}).status_code == 400


def test_captions_of_a_recording_are_shared_with_it(
    session: LiveSession, alice: User, client_of: ClientOf
) -> None:
    session.recording = make_recording(alice, "Planning")
    session.save()
    share_links.create_share_link(thing=session, hours=4, made_by=alice)
    client = client_of(alice)
    page = client.get(f"/live/{session.id}/share/").content.decode()
    assert f"/recordings/{session.recording.id}/share/" in page
    assert "share/add/" not in page


def test_names_are_text(thing: Thing, alice: User, bob: User, client_of: ClientOf) -> None:
    bob.name = "<b>Bob</b>"
    bob.save()
    share(thing, with_=make_team("<i>Sales</i>"))
    page = client_of(alice).get(page_of(thing, "share/"), {"q": "<b>"}).content.decode()
    assert "&lt;b&gt;Bob" in page
    assert "&lt;i&gt;Sales" in page
    assert "<b>Bob" not in page


def test_the_number_of_queries_does_not_grow_with_the_shares(
    thing: Thing,
    alice: User,
    bob: User,
    client_of: ClientOf,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:
    for number in range(5):
        share(thing, with_=make_team(f"Team {number}", bob))
        share_links.create_share_link(thing=thing, hours=24, made_by=alice)
    client = client_of(alice)
    with django_assert_max_num_queries(8):  # type: ignore[attr-defined]
        client.get(page_of(thing, "share/"), {"q": "o"})


# Links --------------------------------------------------------------------------------------------


def test_a_new_link_is_shown_once_with_its_code(
    session: LiveSession, alice: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    page = client.post(f"/live/{session.id}/share/", {"hours": "4"})
    shown = re.search(r"http://testserver(/s/[\w-]{22}/)", page.content.decode())
    assert shown is not None
    assert "data:image/svg+xml" in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    assert client_of(None).get(shown[1]).status_code == 200
    assert shown[1] not in client.get(f"/live/{session.id}/share/").content.decode()


def test_the_owner_withdraws_a_link(
    session: LiveSession, token: str, alice: User, client_of: ClientOf
) -> None:
    link = session.links.get()
    client = client_of(alice)
    assert "Open until" in client.get(f"/live/{session.id}/share/").content.decode()
    response = client.post(f"/links/{link.id}/revoke/")
    assert response["Location"] == f"/live/{session.id}/share/"
    page = client.get(response["Location"]).content.decode()
    assert "Withdrawn" in page
    assert "Open until" not in page
    assert client_of(None).get(f"/s/{token}/").status_code == 404


def test_only_the_owner_has_links(
    session: LiveSession, token: str, bob: User, client_of: ClientOf
) -> None:
    LiveSession.objects.update(visibility=Visibility.ORGANISATION)
    link = session.links.get()
    client = client_of(bob)
    assert client.get(f"/live/{session.id}/share/").status_code == 404
    assert client.post(f"/live/{session.id}/share/", {"hours": "4"}).status_code == 404
    assert client.post(f"/links/{link.id}/revoke/").status_code == 404
    assert client.post(f"/links/{uuid4()}/revoke/").status_code == 404
    assert f"/live/{session.id}/share/" not in client.get(f"/live/{session.id}/").content.decode()
    assert client_of(None).get(f"/live/{session.id}/share/").status_code == 302
    assert session.links.count() == 1
    assert client_of(None).get(f"/s/{token}/").status_code == 200


@pytest.mark.parametrize("hours", ["", "0", "5", "-4", "x"])
def test_bad_lifetimes_make_no_link(
    session: LiveSession, alice: User, client_of: ClientOf, hours: str
) -> None:
    answer = client_of(alice).post(f"/live/{session.id}/share/", {"hours": hours})
    assert answer.status_code == 400
    assert not ShareLink.objects.exists()


def test_switched_off_no_link_is_offered(
    session: LiveSession, alice: User, client_of: ClientOf, settings: Settings
) -> None:
    settings.SITE = settings.SITE.model_copy(update={"share_links": False})
    client = client_of(alice)
    page = client.get(f"/live/{session.id}/share/").content.decode()
    assert "switched links off" in page
    assert "Make a link" not in page
    assert client.post(f"/live/{session.id}/share/", {"hours": "4"}).status_code == 409


def test_the_owner_s_page_makes_few_queries(
    session: LiveSession,
    alice: User,
    client_of: ClientOf,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:
    for _ in range(5):
        share_links.create_share_link(thing=session, hours=4, made_by=alice)
    client = client_of(alice)
    with django_assert_max_num_queries(6):  # type: ignore[attr-defined]
        client.get(f"/live/{session.id}/share/")
