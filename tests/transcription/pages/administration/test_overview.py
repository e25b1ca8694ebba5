"""The overview: what needs attention, each with the page that helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from redis import Redis

from asr_engine.protocol import ENGINES_KEY, EngineStatus, encode, engine_key
from tests.fakes.recordings import claim_of, make_job
from transcription.models import Job, PurgeRun, RetentionPolicy, Webhook
from transcription.pages.administration import attention
from transcription.pages.administration.attention import Attention, what_needs_attention
from transcription.services import jobs, machine
from webapp.accounts.models import Act, AuditEntry, User

ADDRESS = "/administration/"
ENGINE = EngineStatus(
    engine="engine-1",
    model="scripted",
    languages=(),
    can_detect_language=True,
    modes_ms=(160,),
    default_mode_ms=160,
    slots=2,
    free_slots=2,
    is_draining=False,
    beat_at_s=0.0,
)


@pytest.fixture
def healthy(
    db: None, broker: Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.MonkeyPatch]:
    """Nothing needs attention, but for what a test does."""
    monkeypatch.setattr(attention, "findings", list)
    monkeypatch.setattr(machine, "missing_models", list)
    disk = machine.Disk(total_bytes=1024**4, free_bytes=1024**4)
    monkeypatch.setattr(machine, "look_at_disk", lambda: disk)
    beat(broker, ENGINE)
    return monkeypatch


def beat(broker: Redis, status: EngineStatus) -> None:
    broker.sadd(ENGINES_KEY, status.engine)
    broker.set(engine_key(status.engine), encode(status))


def only() -> Attention:
    (item,) = what_needs_attention()
    return item


def test_where_nothing_is_wrong_it_says_so(client: Client, healthy: pytest.MonkeyPatch) -> None:
    assert "All is well." in client.get(ADDRESS).content.decode()


def test_what_does_not_work_comes_first_and_leads_on(client: Client, broker: Redis) -> None:
    """Nothing runs here: no engine, no worker, no recorder."""
    page = client.get(ADDRESS).content.decode()
    assert "No speech engine runs: live captions cannot start." in page
    tones = [item.tone for item in what_needs_attention()]
    assert tones == sorted(tones)  # danger before warning
    assert 'href="/administration/engines/">Engines</a>' in page


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (replace(ENGINE, free_slots=0), "Every engine is full."),
        (replace(ENGINE, is_draining=True), "engine-1 is draining."),
        (replace(ENGINE, lag_ms=1500), "engine-1 is 1.5 s late."),
    ],
)
def test_an_engine_that_takes_no_session_is_told(
    healthy: pytest.MonkeyPatch, broker: Redis, status: EngineStatus, said: str
) -> None:
    beat(broker, status)
    assert (only().title, only().tone) == (said, "warning")


def test_missing_models_and_a_scarce_disk_are_told(healthy: pytest.MonkeyPatch) -> None:
    healthy.setattr(machine, "missing_models", lambda: ["whisper-base"])
    assert only().title == "The model whisper-base is missing or damaged."
    healthy.setattr(machine, "missing_models", list)
    disk = machine.Disk(total_bytes=1024**4, free_bytes=1024**3)
    healthy.setattr(machine, "look_at_disk", lambda: disk)
    assert only().title == "The disk has 1 GB left."


@pytest.mark.usefixtures("sent")
def test_failed_and_forgotten_jobs_are_told(healthy: pytest.MonkeyPatch, alice: User) -> None:
    for _ in range(2):
        make_job(alice)
        jobs.fail_attempt(claim=claim_of(), code="bad", problem="No.", is_retryable=False)
    assert only().title == "2 transcriptions failed."
    assert only().address == "/administration/jobs/?show=failed"
    Job.objects.all().delete()
    job = make_job(alice)
    Job.objects.filter(id=job.id).update(enqueued_at=timezone.now() - timedelta(hours=3.5))
    assert only().title == "A recording has waited 3 h for its transcription."


def test_retention_that_failed_or_is_about_to_change_is_told(
    healthy: pytest.MonkeyPatch,
) -> None:
    RetentionPolicy.objects.create(
        audio_days=30, takes_effect_at=timezone.now() + timedelta(days=1)
    )
    assert only().title == "A changed retention is about to take effect."
    PurgeRun.objects.create(problem="The disk refused.", is_open=False)
    first, _ = what_needs_attention()
    assert (first.title, first.tone) == ("The last purge: The disk refused.", "danger")


def test_webhooks_given_up_and_guessed_passwords_are_told(
    healthy: pytest.MonkeyPatch, alice: User
) -> None:
    Webhook.objects.create(
        owner=alice, name="x", url="https://hooks.example.org", disabled_reason="It was down."
    )
    assert only().title == "A webhook was switched off after many failures."
    Webhook.objects.all().delete()
    AuditEntry.objects.bulk_create(
        AuditEntry(act=Act.LOG_IN_FAILED) for _ in range(attention.FAILED_LOG_INS)
    )
    assert only().title == "20 log-ins failed within an hour."


def test_the_page_asks_again_for_what_changes_alone(
    client: Client, healthy: pytest.MonkeyPatch
) -> None:
    part = client.get(ADDRESS, headers={"HX-Request": "true"}).content.decode()
    assert "All is well." in part
    assert "<html" not in part
