"""What people do with recordings and captions is told, by every road, with where it came from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.test import Client

from tests.fakes.live import Page, log_in, make_session
from tests.fakes.recordings import make_job
from transcription.models import GlossaryTerm, Recording, Visibility
from transcription.services import glossary, jobs
from webapp.accounts.models import ApiToken, AuditEntry, User

ClientOf = Callable[[User | None], Client]


@pytest.fixture
def recording(alice: User, sent: list[tuple[str, ...]]) -> Recording:
    return make_job(alice, title="Budget meeting").recording


def told(about: Recording | None = None) -> list[str]:
    """Acts in their order, without the log-in."""
    entries = AuditEntry.objects.exclude(act="logged_in").order_by("id")
    if about is not None:
        entries = entries.filter(subject_kind="recording", subject_id=str(about.id))
    return list(entries.values_list("act", flat=True))


def test_reading_is_told_once_for_each_way_and_person(
    alice: User, bob: User, recording: Recording, client_of: ClientOf
) -> None:
    Recording.objects.update(is_organisation_wide=True)
    for person in (alice, bob):
        client = client_of(person)
        for _ in range(2):
            client.get(f"/recordings/{recording.id}/")
            client.get(f"/recordings/{recording.id}/transcript/")
            client.get(f"/recordings/{recording.id}/media", headers={"Range": "bytes=0-1"})
            client.get(f"/recordings/{recording.id}/export.srt")
    assert told(recording) == ["viewed", "played", "exported"] * 2
    entry = AuditEntry.objects.filter(act="exported", actor=bob).get()
    assert (entry.subject_name, entry.detail) == ("Budget meeting", {"format": "srt"})
    assert (entry.address, entry.token_name) == ("127.0.0.1", "")


def test_a_stranger_who_is_refused_leaves_no_reading(
    charlie: User, recording: Recording, client_of: ClientOf
) -> None:
    client = client_of(charlie)
    for part in ("", "media", "export.srt"):
        assert client.get(f"/recordings/{recording.id}/{part}").status_code == 404
    assert told() == []


def test_a_head_request_reads_nothing(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    client = client_of(alice)
    client.head(f"/recordings/{recording.id}/media")
    client.head(f"/recordings/{recording.id}/export.srt")
    assert told(recording) == []


def test_changes_are_told(alice: User, recording: Recording, client_of: ClientOf) -> None:
    client = client_of(alice)
    client.post(f"/recordings/{recording.id}/rename/", {"title": "Budget"})
    client.post(f"/recordings/{recording.id}/share/audience/", {"audience": "everybody"})
    client.post(f"/recordings/{recording.id}/cancel/")
    client.post(f"/recordings/{recording.id}/retry/")
    client.post(f"/recordings/{recording.id}/delete/")
    assert told(recording) == ["edited", "shared", "job_ended", "job_asked", "job_ended", "trashed"]
    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {alice.pk}


def test_a_change_that_is_refused_is_not_told(alice: User, recording: Recording) -> None:
    with pytest.raises(Exception, match="already"):
        jobs.retry_job(recording=recording, requested_by=alice)
    assert told() == []


def test_the_glossary_tells_how_much_and_no_more(administrator: User, alice: User) -> None:
    terms = glossary.read_terms(["Hale", "Helstone"])
    for _ in range(2):  # the second time nothing changes
        glossary.write_terms(recording=None, terms=terms, written_by=administrator)
    glossary.delete_term(term=GlossaryTerm.objects.get(phrase="Hale"), deleted_by=administrator)
    entries = AuditEntry.objects.filter(act="glossary_changed").order_by("id")
    assert [entry.detail for entry in entries] == [
        {"added": 2, "changed": 0, "removed": 0},
        {"removed": 1},
    ]


def test_a_tool_is_told_by_its_token(alice: User, recording: Recording, client: Client) -> None:
    token, secret = ApiToken.issue(user=alice, name="Subtitle tool")
    for _ in range(2):
        client.get(
            f"/recordings/{recording.id}/export.vtt",
            headers={"Authorization": f"Bearer {secret}"},
        )
    used, exported = AuditEntry.objects.order_by("id")
    assert (used.act, used.subject_id) == ("token_used", str(token.pk))
    assert (exported.act, exported.actor, exported.token_name) == (
        "exported",
        alice,
        "Subtitle tool",
    )
    assert secret not in str([vars(entry) for entry in (used, exported)])


@pytest.mark.django_db(transaction=True)
async def test_captions_are_told_by_page_and_socket(alice: User, bob: User) -> None:
    session = await sync_to_async(make_session)(alice, visibility=Visibility.ORGANISATION)
    client = await sync_to_async(log_in)(bob)
    await sync_to_async(client.get)(f"/live/{session.id}/")
    page = Page(f"/ws/v1/live/{session.id}/captions", await sync_to_async(log_in)(alice))
    assert await page.connect()
    await page.hear("ready")
    await page.leave()
    viewed = AuditEntry.objects.filter(act="viewed", subject_id=str(session.id)).order_by("id")
    readers = await database_sync_to_async(list)(viewed.values_list("actor", flat=True))
    assert readers == [bob.pk, alice.pk]
