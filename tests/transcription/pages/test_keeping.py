"""How long a recording is kept: what its page says, and its owner's choice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.fakes.recordings import make_recording
from transcription.models import Recording, RetentionPolicy, Share
from webapp.accounts.models import Act, AuditEntry, Team, User

ClientOf = Callable[[User | None], Client]
DAY = timedelta(days=1)


@pytest.fixture
def recording(alice: User) -> Recording:
    return make_recording(alice, state="ready")


def keep(client: Client, recording: Recording, **choice: str) -> str:
    response = client.post(f"/recordings/{recording.id}/keep/", choice, follow=True)
    recording.refresh_from_db()
    return f"{response.status_code} {response.content.decode()}"


def words(day: object) -> str:
    return f"{day:%-d %B %Y}"


def test_the_page_says_until_when(alice: User, recording: Recording, client_of: ClientOf) -> None:
    address = f"/recordings/{recording.id}/"
    assert "ept until</dt>" not in client_of(alice).get(address).content.decode()
    RetentionPolicy.objects.create(audio_days=20, transcript_days=40)
    page = client_of(alice).get(address).content.decode()
    assert f"Audio kept until</dt><dd>{words(recording.created_at + 20 * DAY)}" in page
    assert f"<dt>Kept until</dt><dd>{words(recording.created_at + 40 * DAY)}" in page
    recording.is_held, recording.held_reason = True, "Case 7"
    recording.save()
    page = client_of(alice).get(address).content.decode()
    assert "Nothing of it is deleted: Case 7" in page
    assert "ept until</dt>" not in page


def test_a_day_of_its_own_counts_to_its_end(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    client, day = client_of(alice), timezone.localdate() + 9 * DAY
    assert f"It is kept until {words(day)}" in keep(client, recording, until=day.isoformat())
    assert recording.expires_at is not None
    assert timezone.localtime(recording.expires_at).date() == day
    assert timezone.localtime(recording.expires_at + timedelta(seconds=2)).date() == day + DAY
    assert "as long as the rules say" in keep(client, recording, until="")
    assert recording.expires_at is None
    told = AuditEntry.objects.filter(act=Act.POLICY_CHANGED, actor=alice)
    assert told.count() == 2


@pytest.mark.parametrize("until", ["2020-01-01", "31/12/2099", "tomorrow"])
def test_a_day_that_is_none_changes_nothing(
    alice: User, recording: Recording, client_of: ClientOf, until: str
) -> None:
    assert keep(client_of(alice), recording, until=until).startswith("400")
    assert recording.expires_at is None


def test_rules_are_those_of_a_team_of_one_s_own(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    own, other = Team.objects.create(name="Ours"), Team.objects.create(name="Theirs")
    own.members.add(alice)
    client = client_of(alice)
    page = client.get(f"/recordings/{recording.id}/").content.decode()
    assert "Those of Ours" in page
    assert "Those of Theirs" not in page
    assert keep(client, recording, team=str(own.pk)).startswith("200")
    assert recording.team == own
    assert keep(client, recording, team=str(other.pk)).startswith("400")
    assert recording.team == own
    keep(client, recording, team="")
    assert recording.team is None


def test_only_the_owner_chooses(
    alice: User, bob: User, charlie: User, recording: Recording, client_of: ClientOf
) -> None:
    Share.objects.create(recording=recording, person=bob, can_edit=True)
    for person in (bob, charlie):
        assert keep(client_of(person), recording, until="2099-01-01").startswith("404")
    response = client_of(None).post(f"/recordings/{recording.id}/keep/", {"until": "2099-01-01"})
    assert "/accounts/login/" in response["Location"]
    assert (
        "How long it is kept"
        not in client_of(bob).get(f"/recordings/{recording.id}/").content.decode()
    )


def test_without_audio_the_page_says_so_and_offers_nothing_that_needs_it(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    Recording.objects.filter(id=recording.id).update(audio_removed_at=timezone.now())
    client = client_of(alice)
    page = client.get(f"/recordings/{recording.id}/").content.decode()
    assert "The audio of this recording is no longer kept" in page
    assert 'data-opens="again"' not in page
    assert f"/api/v1/recordings/{recording.id}/media" not in page
    response = client.post(f"/recordings/{recording.id}/retry/")
    assert response.status_code == 409
    assert "was removed by the retention rules" in response.content.decode()
