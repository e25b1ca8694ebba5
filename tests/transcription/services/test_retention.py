"""Policies, the night from which they count, and what is said of one recording."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.fakes.clock import DAY, MOMENT, NIGHT, Clock
from tests.fakes.live import make_session
from tests.fakes.recordings import make_recording, make_upload
from transcription.errors import ConflictError, InvalidInputError, NotFoundError
from transcription.models import Recording, RetentionPolicy
from transcription.services import purge_plan, retention, trash, uploads
from transcription.services.retention_rules import UNLESS_SAID_OTHERWISE, Rules
from transcription.services.uploads import CheckedAudio
from webapp.accounts.models import Team, User

AUDIO = CheckedAudio(
    duration_ms=1000,
    container="wav",
    codec="pcm",
    player_name="source.bin",
    media_type="audio/wav",
    is_damaged=False,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize(
    ("now", "night"),
    [(NIGHT - MOMENT, NIGHT), (NIGHT, NIGHT + DAY), (NIGHT + DAY / 2, NIGHT + DAY)],
)
def test_the_next_night_is_always_to_come(now: datetime, night: datetime) -> None:
    assert retention.next_night(now) == night


@pytest.mark.parametrize("hours", range(25))
def test_a_change_leaves_a_day_to_take_it_back(hours: int) -> None:
    now = NIGHT + timedelta(hours=hours, minutes=1)
    assert DAY < retention.effect_of_change(now) - now <= 2 * DAY


def test_without_any_policy_the_trash_alone_has_an_end(db: None) -> None:
    book = retention.rule_book(NIGHT)
    assert book.organisation == UNLESS_SAID_OTHERWISE == Rules(trash_days=30)
    assert book.of(7) == book.organisation


def test_a_change_takes_the_place_of_the_one_that_waits(administrator: User, clock: Clock) -> None:
    team = Team.objects.create(name="Archive")
    for whose, days in ((None, 90), (team, 400), (None, 60)):
        rules = Rules(transcript_days=days)
        retention.change_policy(team=whose, rules=rules, changed_by=administrator)
    found = {(policy.team, policy.transcript_days) for policy in retention.waiting_policies()}
    assert found == {(team, 400), (None, 60)}
    assert retention.rule_book(clock.now).organisation == UNLESS_SAID_OTHERWISE
    night = retention.effect_of_change(clock.now)
    assert retention.rule_book(night - MOMENT).organisation == UNLESS_SAID_OTHERWISE
    assert retention.rule_book(night).organisation == Rules(transcript_days=60)
    assert retention.rule_book(night).of(team.pk) == Rules(transcript_days=400)


def test_a_change_is_taken_back_until_it_takes_effect(administrator: User, clock: Clock) -> None:
    def change() -> RetentionPolicy:
        rules = Rules(transcript_days=5)
        return retention.change_policy(team=None, rules=rules, changed_by=administrator)

    retention.take_back_policy(policy=change(), taken_back_by=administrator)
    assert not RetentionPolicy.objects.exists()
    policy = change()
    clock.now = policy.takes_effect_at
    with pytest.raises(ConflictError):
        retention.take_back_policy(policy=policy, taken_back_by=administrator)
    assert RetentionPolicy.objects.exists()


@pytest.mark.parametrize("name", ["audio_days", "live_audio_days"])
def test_audio_does_not_outlive_its_transcript(db: None, name: str) -> None:
    rules = Rules(**{name: 31, "transcript_days": 30})
    with pytest.raises(InvalidInputError, match="Audio cannot be kept"):
        retention.draft_policy(team=None, rules=rules)


def test_a_preview_knows_from_which_night_the_change_counts(
    alice: User, administrator: User, clock: Clock
) -> None:
    RetentionPolicy.objects.create(transcript_days=50, takes_effect_at=NIGHT - DAY)
    for days in (50, 45, 20):
        make_recording(alice, created_at=NIGHT - days * DAY)
    clock.move(-DAY / 2)
    proposed = retention.draft_policy(team=None, rules=Rules(transcript_days=30))
    policies = retention.policies_with(proposed)
    nights = [NIGHT + number * DAY for number in range(11)]
    shown = purge_plan.preview([(at, retention.book_at(at, policies)) for at in nights])
    assert {night.at: night.trashed for night in shown if not night.is_quiet} == {
        NIGHT: 1,  # by the rules in force
        NIGHT + DAY: 1,  # with the change
        NIGHT + 10 * DAY: 1,
    }
    assert retention.rule_book(clock.now + 9 * DAY).organisation == Rules(transcript_days=50)


# Whose rules count --------------------------------------------------------------------------------


def test_what_somebody_records_follows_their_only_team(alice: User) -> None:
    assert retention.usual_team_of(alice) is None
    first = Team.objects.create(name="Archive")
    first.members.add(alice)
    upload = make_upload(alice)
    assert uploads.accept_upload(upload=upload, audio=AUDIO).team == first
    assert make_session(alice).team == first
    Team.objects.create(name="Press").members.add(alice)
    assert retention.usual_team_of(alice) is None


def test_what_was_deleted_meanwhile_is_not_found(alice: User, administrator: User) -> None:
    gone = make_recording(alice)
    trash.delete_for_ever(recording=Recording.objects.get(), deleted_by=alice)
    with pytest.raises(NotFoundError):
        retention.hold_recording(recording=gone, reason="Case 7", held_by=administrator)
    with pytest.raises(NotFoundError):
        retention.release_recording(recording=gone, released_by=administrator)
    with pytest.raises(NotFoundError):
        retention.set_expiry(recording=gone, expires_at=None, changed_by=alice)
    with pytest.raises(NotFoundError):
        retention.set_team(recording=gone, team=None, changed_by=alice)
