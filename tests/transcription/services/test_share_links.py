"""Links to captions: random, hashed, of limited life, withdrawn at once, and slow to guess."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import structlog
from django.core.cache import cache
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.fakes.live import make_session
from transcription import selectors
from transcription.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    TooFastError,
    UnknownLinkError,
)
from transcription.models import LiveSession, Recording, ShareLink
from transcription.services import share_links
from webapp.accounts.models import User

HERE = "192.0.2.7"


@pytest.fixture
def session(alice: User) -> LiveSession:
    return make_session(alice)


@pytest.fixture(autouse=True)
def forget_wrong_tokens() -> Iterator[None]:
    yield
    cache.delete(f"wrong-links:{HERE}")


def make_link(thing: LiveSession | Recording) -> tuple[ShareLink, str]:
    return share_links.create_share_link(thing=thing, hours=24, made_by=thing.owner)


def test_a_link_leads_to_its_session_alone(session: LiveSession, alice: User) -> None:
    _, token = make_link(session)
    _, other = make_link(make_session(alice))
    assert selectors.access_caption_link_by_token(token).session == session
    assert selectors.access_caption_link_by_token(other).session != session


def test_the_token_has_128_bits_and_is_stored_as_a_hash(session: LiveSession) -> None:
    link, token = make_link(session)
    assert len(token) == 22  # base64 of 16 bytes
    row = ShareLink.objects.filter(id=link.id).values().get()
    assert token not in str(row)
    assert row["sha256"] == ShareLink.hash_token(token)


def test_an_expired_link_says_so(session: LiveSession) -> None:
    link, token = make_link(session)
    ShareLink.objects.filter(id=link.id).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(NotFoundError, match="expired"):
        share_links.open_caption_link(token=token, address=HERE)


def test_a_withdrawn_link_says_so(session: LiveSession) -> None:
    link, token = make_link(session)
    share_links.revoke_share_link(link=link, revoked_by=session.owner)
    share_links.revoke_share_link(link=link, revoked_by=session.owner)  # harmless
    with pytest.raises(NotFoundError, match="withdrawn"):
        share_links.open_caption_link(token=token, address=HERE)


def test_a_link_ends_with_the_account_of_its_maker(session: LiveSession, alice: User) -> None:
    _, token = make_link(session)
    alice.is_active = False
    alice.save()
    with pytest.raises(NotFoundError, match="no longer works"):
        share_links.open_caption_link(token=token, address=HERE)


def test_administrators_switch_links_off(session: LiveSession, settings: Settings) -> None:
    _, token = make_link(session)
    settings.SITE = settings.SITE.model_copy(update={"share_links": False})
    with pytest.raises(NotFoundError, match="switched off"):
        share_links.open_caption_link(token=token, address=HERE)
    with pytest.raises(ConflictError, match="switched off"):
        make_link(session)


def test_lifetimes_are_those_on_offer(session: LiveSession) -> None:
    for hours in (0, -1, 5, 10**9):
        with pytest.raises(InvalidInputError):
            share_links.create_share_link(thing=session, hours=hours, made_by=session.owner)
    assert not session.links.exists()


def test_open_links_of_a_session_are_bounded(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_links, "MAX_OPEN_LINKS", 2)
    first, _ = make_link(session)
    make_link(session)
    with pytest.raises(ConflictError, match="Withdraw one"):
        make_link(session)
    share_links.revoke_share_link(link=first, revoked_by=session.owner)
    assert make_link(session)[0].is_open(timezone.now())


def test_wrong_tokens_are_counted_by_address(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_links, "MAX_WRONG_TOKENS", 3)
    _, token = make_link(session)
    for _ in range(3):
        with pytest.raises(UnknownLinkError):
            share_links.open_caption_link(token="wrong", address=HERE)
    with pytest.raises(TooFastError):
        share_links.open_caption_link(token=token, address=HERE)
    assert share_links.open_caption_link(token=token, address="192.0.2.8").session == session


def test_an_old_link_that_is_tried_again_is_no_guess(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A player that polls must not lock its whole network out when its link runs out."""
    monkeypatch.setattr(share_links, "MAX_WRONG_TOKENS", 1)
    link, token = make_link(session)
    share_links.revoke_share_link(link=link, revoked_by=session.owner)
    for _ in range(3):
        with pytest.raises(NotFoundError, match="withdrawn"):
            share_links.open_caption_link(token=token, address=HERE)


def test_the_log_tells_of_links_and_holds_no_token(session: LiveSession) -> None:
    with structlog.testing.capture_logs() as lines:
        link, token = make_link(session)
        share_links.revoke_share_link(link=link, revoked_by=session.owner)
        for secret in (token, "a-wrong-token"):
            with pytest.raises(NotFoundError):
                share_links.open_caption_link(token=secret, address=HERE)
    assert [line["event"] for line in lines] == [
        "share_link_created",
        "share_link_revoked",
        "share_link_refused",
        "share_link_unknown",
    ]
    assert token not in str(lines)
    assert "a-wrong-token" not in str(lines)
