"""A person's own settings."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from allauth.usersessions.models import UserSession
from django.test import Client

from tests.fakes.people import PASSWORD
from tests.fakes.recordings import make_recording
from transcription.services import space
from webapp.accounts.models import User
from webapp.config import site_settings

ClientOf = Callable[[User | None], Client]


def test_saves_name_zone_and_language(alice: User, client_of: ClientOf) -> None:
    response = client_of(alice).post(
        "/profile/",
        {"name": "Alice <A>", "time_zone": "Asia/Shanghai", "speech_language": "zh"},
        follow=True,
    )
    alice.refresh_from_db()
    assert (alice.name, alice.time_zone, alice.speech_language) == (
        "Alice <A>",
        "Asia/Shanghai",
        "zh",
    )
    page = response.content.decode()
    assert "Your profile is saved." in page
    assert "Alice &lt;A&gt;" in page


@pytest.mark.parametrize(
    ("field", "value"),
    [("time_zone", "Mars/Olympus"), ("speech_language", "klingon"), ("name", "x" * 151)],
)
def test_bad_value_is_refused_beside_its_field(
    alice: User, client_of: ClientOf, field: str, value: str
) -> None:
    response = client_of(alice).post("/profile/", {"name": "Al", field: value})
    assert response.status_code == 400
    assert f'id="id_{field}_error"' in response.content.decode()
    alice.refresh_from_db()
    assert alice.name == "Alice"


def test_role_and_address_cannot_be_changed_here(alice: User, client_of: ClientOf) -> None:
    client_of(alice).post(
        "/profile/", {"name": "A", "role": "administrator", "email": "x@y.z", "is_staff": "on"}
    )
    alice.refresh_from_db()
    assert (alice.role, alice.email, alice.is_staff) == ("staff", "alice@example.org", False)


def test_anonymous_is_sent_to_log_in(client_of: ClientOf, db: None) -> None:
    assert client_of(None).get("/profile/").status_code == 302
    assert client_of(None).post("/profile/language/", {"language": "en"}).status_code == 302


def test_language_chosen_last_is_remembered(alice: User, client_of: ClientOf) -> None:
    client = client_of(alice)
    assert client.post("/profile/language/", {"language": "zh"}).status_code == 204
    assert '<option value="zh" selected>' in client.get("/").content.decode()
    assert client.post("/profile/language/", {"language": "klingon"}).status_code == 400


def test_that_languages_mixed_once_is_not_remembered(alice: User, client_of: ClientOf) -> None:
    client = client_of(alice)
    client.post("/profile/language/", {"language": "zh"})
    assert client.post("/profile/language/", {"language": "mul"}).status_code == 204
    alice.refresh_from_db()
    assert alice.speech_language == "zh"


def test_number_of_queries_is_bounded(
    alice: User,
    client_of: ClientOf,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:
    client = client_of(alice)
    with django_assert_max_num_queries(8):  # type: ignore[attr-defined]
        client.get("/profile/")


@pytest.mark.parametrize(
    ("most_bytes", "words", "is_warned"),
    [
        (1024, "950 bytes of audio of 1 kB that you may keep.", True),
        (4096, "950 bytes of audio of 4 kB that you may keep.", False),
        (0, "950 bytes of audio.", False),
    ],
)
def test_profile_says_how_much_is_kept(
    most_bytes: int,
    words: str,
    is_warned: bool,
    alice: User,
    client_of: ClientOf,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed = site_settings().model_copy(update={"max_stored_bytes_per_person": most_bytes})
    monkeypatch.setattr(space, "site_settings", lambda: changed)
    make_recording(alice, size_bytes=950)
    page = client_of(alice).get("/profile/").content.decode()
    assert words in page
    assert ("Uploads that do not fit are refused" in page) == is_warned


# Log-ins ------------------------------------------------------------------------------------------


def log_in(person: User) -> Client:
    client = Client(headers={"user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"})
    client.post("/accounts/login/", {"login": person.email, "password": PASSWORD})
    return client


def test_another_browser_is_shown_and_logged_out(alice: User) -> None:
    here, there = log_in(alice), log_in(alice)
    page = here.get("/profile/").content.decode()
    assert page.count("Firefox on Linux") == 3  # twice in the list, once in the button's name
    assert page.count("This browser") == 1
    act = re.search(r"/profile/sessions/\d+/end/", page)
    assert act is not None
    here.post(act[0])
    assert there.get("/profile/").status_code == 302
    assert here.get("/profile/").status_code == 200


def test_log_out_everywhere_else_leaves_this_browser_in(alice: User, client_of: ClientOf) -> None:
    here, there, unlisted = log_in(alice), log_in(alice), client_of(alice)
    answer = here.post("/profile/sessions/end/", follow=True)
    assert "everywhere but here" in answer.content.decode()
    assert "This browser" in answer.content.decode()
    assert there.get("/profile/").status_code == 302
    assert unlisted.get("/profile/").status_code == 302


def test_sessions_of_others_are_out_of_reach(alice: User, bob: User) -> None:
    hers, his = log_in(alice), log_in(bob)
    pk = UserSession.objects.get(user=alice).pk
    assert his.post(f"/profile/sessions/{pk}/end/").status_code == 404
    assert hers.get("/profile/").status_code == 200
    assert Client().post(f"/profile/sessions/{pk}/end/").status_code == 302
    assert hers.get("/profile/sessions/end/").status_code == 405
