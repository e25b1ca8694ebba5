"""The pages behind a link to captions, and refusals in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import structlog
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.fakes.live import make_session
from transcription.models import LiveSession, LiveState, ShareLink
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


def test_a_guest_has_the_zone_of_their_browser(token: str, client_of: ClientOf) -> None:
    assert 'data-time-zone=""' in client_of(None).get(f"/s/{token}/").content.decode()


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
