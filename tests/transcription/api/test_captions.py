"""Captions as text and WebVTT: who may read them, what they hold, and polling that costs little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from tests.fakes.live import final, make_session
from transcription.models import LiveSession, Visibility
from transcription.services import live_sessions, share_links
from webapp.accounts.models import ApiToken, User

ClientOf = Callable[[User | None], Client]

LONG = "We have three things to talk about: the move to the new building, and the budget."


def say(session: LiveSession, number: int, text: str) -> None:
    live_sessions.record_final(event=replace(final(session, number, text), words=()))


@pytest.fixture
def session(alice: User) -> LiveSession:
    session = make_session(alice)
    say(session, 0, "Good morning.")
    say(session, 1, "<b>Second</b> & last.")
    return session


@pytest.fixture
def token(session: LiveSession) -> str:
    return share_links.create_share_link(thing=session, hours=4, made_by=session.owner)[1]


def address(session: LiveSession, name: str = "captions.txt") -> str:
    return f"/live/{session.id}/{name}"


def test_text_has_a_line_for_what_was_said(
    session: LiveSession, alice: User, client_of: ClientOf
) -> None:
    response = client_of(alice).get(address(session))
    assert response.content.decode() == "Good morning.\n<b>Second</b> & last.\n"
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"


def test_the_last_lines_are_lines_of_a_subtitle(
    session: LiveSession, alice: User, client_of: ClientOf
) -> None:
    say(session, 2, LONG)
    client = client_of(alice)
    lines = client.get(address(session, "captions.txt?lines=2")).content.decode().splitlines()
    assert " ".join(lines) == LONG
    assert all(len(line) <= 42 for line in lines)
    three = client.get(address(session, "captions.txt?lines=3")).content.decode().splitlines()
    assert three == ["<b>Second</b> & last.", *lines]


def test_vtt_has_everything_with_its_times(
    session: LiveSession, alice: User, client_of: ClientOf
) -> None:
    response = client_of(alice).get(address(session, "captions.vtt"))
    assert response["Content-Type"] == "text/vtt; charset=utf-8"
    assert response.content.decode() == (
        "WEBVTT - Weekly meeting\n\n"
        "00:00:00.000 --> 00:00:01.000\nGood morning.\n\n"
        "00:00:01.000 --> 00:00:01.900\n&lt;b&gt;Second&lt;/b&gt; &amp; last.\n"
    )


def test_nothing_said_yet_is_a_valid_answer(alice: User, client_of: ClientOf) -> None:
    session = make_session(alice)
    assert client_of(alice).get(address(session)).content == b""
    assert client_of(alice).get(address(session, "captions.vtt")).content.startswith(b"WEBVTT")


def test_polling_gets_304_until_something_is_said(
    session: LiveSession,
    alice: User,
    client_of: ClientOf,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:
    client = client_of(alice)
    first = client.get(address(session))
    headers = {"if-none-match": first["ETag"]}
    with django_assert_max_num_queries(3):  # type: ignore[attr-defined]
        again = client.get(address(session), headers=headers)
    assert (again.status_code, again.content) == (304, b"")
    say(session, 2, "More.")
    fresh = client.get(address(session), headers=headers)
    assert fresh.content.decode().endswith("More.\n")
    assert fresh["ETag"] != first["ETag"]


def test_each_number_of_lines_has_its_own_tag(
    session: LiveSession, alice: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    tag = client.get(address(session, "captions.txt?lines=1"))["ETag"]
    answer = client.get(address(session, "captions.txt?lines=2"), headers={"if-none-match": tag})
    assert answer.status_code == 200


@pytest.mark.parametrize("lines", ["-1", "101", "two", "1e3", "٣"])
def test_a_bad_number_of_lines_is_refused(
    session: LiveSession, alice: User, client_of: ClientOf, lines: str
) -> None:
    response = client_of(alice).get(address(session), {"lines": lines})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_input")


def test_stranger_gets_404_and_anonymous_is_asked_who_they_are(
    session: LiveSession, charlie: User, client_of: ClientOf
) -> None:
    for name in ("captions.txt", "captions.vtt"):
        assert client_of(charlie).get(address(session, name)).status_code == 404
        assert client_of(None).get(address(session, name)).status_code == 401
    assert client_of(charlie).get(f"/live/{uuid4()}/captions.txt").status_code == 404
    assert client_of(charlie).post(address(session)).status_code in {403, 405}


def test_colleague_and_token_read_a_session_of_the_organisation(
    session: LiveSession, bob: User, client_of: ClientOf
) -> None:
    LiveSession.objects.update(visibility=Visibility.ORGANISATION)
    assert client_of(bob).get(address(session)).status_code == 200
    _, secret = ApiToken.issue(user=bob, name="OBS")
    headers = {"authorization": f"Bearer {secret}"}
    assert client_of(None).get(address(session), headers=headers).status_code == 200


# By a link ----------------------------------------------------------------------------------------


def test_a_link_gives_both_and_tells_no_one(
    session: LiveSession, token: str, client_of: ClientOf
) -> None:
    client = client_of(None)
    for name in ("captions.txt", "captions.vtt"):
        response = client.get(f"/s/{token}/{name}")
        assert response.status_code == 200
        assert b"Good morning." in response.content
        assert response["Referrer-Policy"] == "no-referrer"
        assert response["X-Robots-Tag"] == "noindex, nofollow"
        assert "sessionid" not in response.cookies
    tag = response["ETag"]
    assert client.get(f"/s/{token}/captions.vtt", headers={"if-none-match": tag}).status_code == 304


def test_a_refused_link_is_one_sentence(
    session: LiveSession, token: str, client_of: ClientOf, settings: Settings
) -> None:
    share_links.revoke_share_link(link=session.links.get(), revoked_by=session.owner)
    response = client_of(None).get(f"/s/{token}/captions.txt?lines=2")
    assert response.status_code == 404
    assert response.content.decode() == "This link was withdrawn by the person who made it.\n"
    assert response["X-Robots-Tag"] == "noindex, nofollow"
    settings.SITE = settings.SITE.model_copy(update={"share_links": False})
    response = client_of(None).get(f"/s/{token}/captions.txt")
    assert response.content.decode() == "Links are switched off on this server.\n"
