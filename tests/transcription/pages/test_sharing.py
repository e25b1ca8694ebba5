"""Links to captions: the owner's page, the pages behind a link, and refusals in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
import structlog
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.fakes.live import make_session
from transcription.models import LiveSession, LiveState, ShareLink, Visibility
from transcription.services import share_links
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]

BEHIND = ("", "room/", "status/")


@pytest.fixture
def session(alice: User) -> LiveSession:
    return make_session(alice, title="Planning")


@pytest.fixture
def token(session: LiveSession) -> str:
    return share_links.create_share_link(thing=session, hours=24, made_by=session.owner)[1]


@pytest.fixture(autouse=True)
def forget_wrong_tokens() -> Iterator[None]:
    yield
    cache.delete("wrong-links:127.0.0.1")


# The owner's page ---------------------------------------------------------------------------------


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
    with django_assert_max_num_queries(5):  # type: ignore[attr-defined]
        client.get(f"/live/{session.id}/share/")


# Behind a link ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", BEHIND)
def test_a_link_needs_no_log_in_and_tells_no_one(
    session: LiveSession, token: str, client_of: ClientOf, path: str
) -> None:
    response = client_of(None).get(f"/s/{token}/{path}")
    assert response.status_code == 200
    assert response["Referrer-Policy"] == "no-referrer"
    assert response["X-Robots-Tag"] == "noindex, nofollow"
    assert "no-store" in response["Cache-Control"]
    assert token not in response.content.decode()


def test_pages_behind_a_link_lead_nowhere_else(
    session: LiveSession, token: str, alice: User, client_of: ClientOf
) -> None:
    """Also for the owner, so that what they see is what they share."""
    for person in (None, alice):
        page = client_of(person).get(f"/s/{token}/").content.decode()
        assert "Planning" in page
        assert "?by=link" in page
        assert f"/live/{session.id}/" not in page.replace(f"/ws/v1/live/{session.id}/", "")
        assert 'href="/"' not in page


def test_a_link_does_not_tell_of_the_recording(
    session: LiveSession, token: str, client_of: ClientOf
) -> None:
    LiveSession.objects.update(state=LiveState.ENDED)
    answer = client_of(None).get(f"/s/{token}/status/").json()
    assert answer == {"state": "ended", "clock": [], "recording": None}


@pytest.mark.parametrize("path", BEHIND)
def test_refused_links_say_why(
    session: LiveSession, token: str, client_of: ClientOf, settings: Settings, path: str
) -> None:
    client = client_of(None)

    def refusal(address: str = f"/s/{token}/{path}") -> str:
        response = client.get(address)
        assert response.status_code == 404
        assert response["Referrer-Policy"] == "no-referrer"
        assert response["X-Robots-Tag"] == "noindex, nofollow"
        return response.content.decode()

    assert "leads nowhere" in refusal(f"/s/wrong/{path}")
    ShareLink.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert "This link has expired." in refusal()
    ShareLink.objects.update(revoked_at=timezone.now())
    assert "This link was withdrawn" in refusal()
    settings.SITE = settings.SITE.model_copy(update={"share_links": False})
    assert "switched off" in refusal()


def test_guessing_is_slowed_down(
    token: str, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_links, "MAX_WRONG_TOKENS", 2)
    client = client_of(None)
    for _ in range(2):
        assert client.get("/s/wrong/").status_code == 404
    response = client.get(f"/s/{token}/")
    assert response.status_code == 429
    assert "Wait ten minutes" in response.content.decode()


def test_links_take_no_post(token: str, client_of: ClientOf) -> None:
    assert client_of(None).post(f"/s/{token}/").status_code == 405


def test_opening_a_link_leaves_a_line_without_the_token(
    token: str, session: LiveSession, client_of: ClientOf
) -> None:
    with structlog.testing.capture_logs() as lines:
        client_of(None).get(f"/s/{token}/")
    assert {
        "event": "share_link_opened",
        "leads_to": str(session.id),
        "log_level": "info",
    } in lines
    assert token not in str(lines)
