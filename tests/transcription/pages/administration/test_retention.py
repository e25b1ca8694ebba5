"""The page of retention: what it says of the nights to come, and how rules change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.fakes.clock import DAY, Clock
from tests.fakes.recordings import make_recording
from transcription.models import PurgeRun, Recording, RetentionPolicy
from transcription.pages.administration.retention import in_words, sentence_of
from transcription.services import retention
from transcription.services.purge_plan import Night
from webapp.accounts.models import Act, AuditEntry, Team, User

ClientOf = Callable[[User | None], Client]
PAGE = "/administration/retention/"
MONDAY = datetime(2026, 12, 7, 2, tzinfo=UTC)


@pytest.fixture
def client(administrator: User, client_of: ClientOf) -> Client:
    return client_of(administrator)


def of(client: Client, address: str, **asked: str) -> str:
    return client.get(address, asked).content.decode()


@pytest.mark.parametrize("page", ["", "change/", "preview/"])
def test_only_administrators_see_it(
    alice: User, administrator: User, client_of: ClientOf, page: str
) -> None:
    assert client_of(administrator).get(PAGE + page).status_code == 200
    assert client_of(alice).get(PAGE + page).status_code == 404
    assert "/accounts/login/" in client_of(None).get(PAGE + page)["Location"]


def test_only_administrators_act(alice: User, client_of: ClientOf) -> None:
    recording = make_recording(alice, is_held=True)
    policy = RetentionPolicy.objects.create(takes_effect_at=MONDAY + 900 * DAY)
    for act in (
        "confirm/",
        "hold/",
        f"{policy.pk}/take-back/",
        f"{recording.id}/release/",
        f"{recording.id}/forget-date/",
    ):
        assert client_of(alice).post(PAGE + act).status_code == 404
        assert "/accounts/login/" in client_of(None).post(PAGE + act)["Location"]
    assert Recording.objects.get().is_held
    assert RetentionPolicy.objects.exists()


# Words --------------------------------------------------------------------------------------------


def test_a_night_is_a_plain_sentence() -> None:
    night = Night(MONDAY, audio=14, audio_bytes=3_435_973_837)
    assert sentence_of(night) == "On Monday, 7 December: 14 recordings lose their audio (3.2 GB)."
    night = Night(MONDAY, audio=1, trashed=1, deleted=1, deleted_bytes=2048, others=1)
    assert in_words([night]) == (
        "1 recording loses its audio (0 bytes), 1 recording moves to the trash, "
        "1 recording is deleted for ever (2 kB), "
        "1 empty session or refused upload is forgotten"
    )
    assert in_words([]) == "nothing ends"
    assert in_words([Night(MONDAY, trashed=2), Night(MONDAY, trashed=1)]) == (
        "3 recordings move to the trash"
    )


# A change -----------------------------------------------------------------------------------------


def test_a_change_is_seen_before_it_is_one(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    clock.now = datetime(2026, 12, 5, 14, tzinfo=UTC)  # a Saturday
    for days in (30, 29, 28, 27):
        make_recording(alice, created_at=clock.now - days * DAY, size_bytes=1024**2)
    page = of(client, PAGE + "preview/", audio_days="29")
    assert "from Monday, 7 December on" in page
    assert "On Monday, 7 December: 3 recordings lose their audio (3 MB)." in page
    assert "On Tuesday, 8 December: 1 recording loses its audio (1 MB)." in page
    assert "<dt>Without it</dt><dd>Nothing ends.</dd>" in page
    assert not RetentionPolicy.objects.exists()


def test_let_take_effect_it_waits_and_can_be_taken_back(client: Client, alice: User) -> None:
    response = client.post(PAGE + "confirm/", {"transcript_days": "90"}, follow=True)
    page = response.content.decode()
    assert "The change takes effect on" in page
    assert "Recordings and their transcripts: 90 days" in page
    (policy,) = retention.waiting_policies()
    page = client.post(f"{PAGE}{policy.pk}/take-back/", follow=True).content.decode()
    assert "The change is taken back" in page
    assert not RetentionPolicy.objects.exists()
    told = AuditEntry.objects.filter(act=Act.POLICY_CHANGED).order_by("id")
    assert [entry.detail.get("transcript_days", "back") for entry in told] == [90, "back"]
    assert client.post(f"{PAGE}{policy.pk}/take-back/").status_code == 404


def test_a_change_that_took_effect_is_not_taken_back(client: Client) -> None:
    policy = RetentionPolicy.objects.create(transcript_days=5)
    assert client.post(f"{PAGE}{policy.pk}/take-back/").status_code == 409
    assert RetentionPolicy.objects.exists()


def test_a_team_may_have_rules_of_its_own(client: Client) -> None:
    team = Team.objects.create(name="Archive")
    assert "Rules of Archive" in of(client, PAGE + "change/", team=str(team.pk))
    client.post(PAGE + "confirm/", {"team": str(team.pk), "transcript_days": "900"})
    (policy,) = retention.waiting_policies()
    assert (policy.team, policy.transcript_days, policy.audio_days) == (team, 900, None)


@pytest.mark.parametrize(
    "asked",
    [
        {"audio_days": "0"},
        {"transcript_days": "-1"},
        {"trash_days": "1.5"},
        {"failed_days": "x"},
        {"audio_days": "99999999999"},
        {"audio_days": "31", "transcript_days": "30"},
    ],
)
def test_days_that_no_rule_may_have_are_refused(client: Client, asked: dict[str, str]) -> None:
    assert client.get(PAGE + "preview/", asked).status_code == 400
    assert client.post(PAGE + "confirm/", asked).status_code == 400
    assert not RetentionPolicy.objects.exists()


@pytest.mark.parametrize("team", ["999", "x", "²"])
def test_a_team_that_is_not_is_not_found(client: Client, team: str) -> None:
    for page in ("change/", "preview/"):
        assert client.get(PAGE + page, {"team": team}).status_code == 404
    assert client.post(PAGE + "confirm/", {"team": team}).status_code == 404


def test_the_form_begins_with_what_is_in_force_or_waits(client: Client) -> None:
    RetentionPolicy.objects.create(transcript_days=77)
    assert 'value="77"' in of(client, PAGE + "change/")
    client.post(PAGE + "confirm/", {"transcript_days": "66"})
    assert 'value="66"' in of(client, PAGE + "change/")
    assert 'value="55"' in of(client, PAGE + "change/", transcript_days="55")


# Hold ---------------------------------------------------------------------------------------------


def test_a_recording_is_held_by_its_address_and_released(client: Client, alice: User) -> None:
    recording = make_recording(alice, title="Weekly")
    asked = {"recording": f"https://here/recordings/{recording.id}/", "reason": "Case 7"}
    page = client.post(PAGE + "hold/", asked, follow=True).content.decode()
    assert "“Weekly” is on hold" in page
    assert "Case 7" in page
    recording.refresh_from_db()
    assert recording.is_held
    client.post(f"{PAGE}{recording.id}/release/")
    recording.refresh_from_db()
    assert not recording.is_held
    told = AuditEntry.objects.filter(act__in=(Act.HELD, Act.RELEASED)).order_by("id")
    assert [entry.act for entry in told] == [Act.HELD, Act.RELEASED]


@pytest.mark.parametrize(
    "named", ["", "nothing", str(uuid4())], ids=["empty", "nothing", "unknown"]
)
def test_what_is_not_is_not_held(client: Client, named: str) -> None:
    response = client.post(PAGE + "hold/", {"recording": named, "reason": "Case 7"})
    assert response.status_code == 400
    assert "field-error" in response.content.decode()
    assert not AuditEntry.objects.filter(act=Act.HELD).exists()


def test_a_hold_has_a_reason(client: Client, alice: User) -> None:
    recording = make_recording(alice)
    response = client.post(PAGE + "hold/", {"recording": str(recording.id), "reason": " "})
    assert response.status_code == 400
    recording.refresh_from_db()
    assert not recording.is_held


def test_days_of_their_own_are_listed_and_can_be_taken(client: Client, alice: User) -> None:
    until = datetime(2099, 5, 3, 12, tzinfo=UTC)
    recording = make_recording(alice, title="Weekly", expires_at=until)
    assert "Until 3 May 2099" in of(client, PAGE)
    client.post(f"{PAGE}{recording.id}/forget-date/")
    recording.refresh_from_db()
    assert recording.expires_at is None


# Reports ------------------------------------------------------------------------------------------


def test_each_run_has_its_report(client: Client) -> None:
    PurgeRun.objects.create(is_open=False, counts={"deleted": 2, "deleted_bytes": 1024})
    PurgeRun.objects.create(is_open=False, problem="The clock is wrong.")
    page = of(client, PAGE)
    assert "2 recordings were deleted for ever (1 kB)." in page
    assert "The clock is wrong." in page


def test_the_page_says_what_the_coming_night_does(client: Client, alice: User) -> None:
    RetentionPolicy.objects.create(transcript_days=5)
    now = datetime.now(UTC)
    make_recording(alice, created_at=now - 9 * DAY)
    make_recording(alice, created_at=now + timedelta(hours=1) - 2 * DAY)
    page = of(client, PAGE)
    assert "1 recording moves to the trash." in page
    assert "Nothing of it" not in page


def test_the_number_of_queries_does_not_grow(
    client: Client, alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        team = Team.objects.create(name=f"Team {number}")
        RetentionPolicy.objects.create(team=team, transcript_days=5)
        make_recording(alice, team=team, is_held=number % 2 == 0, expires_at=MONDAY + 900 * DAY)
    client.get(PAGE)
    with django_assert_max_num_queries(18):
        client.get(PAGE)
