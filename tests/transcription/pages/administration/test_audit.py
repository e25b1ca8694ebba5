"""The page of the audit log: its sentences, its search, its pages and its downloads."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from tests.fakes.recordings import make_recording
from transcription.models import Recording
from transcription.pages.administration import audit as page
from transcription.pages.administration.audit_words import line_of
from webapp.accounts.audit import acts_from, note_token, record_act
from webapp.accounts.models import Act, AuditEntry, User

ADDRESS = "/administration/audit/"


@pytest.fixture
def recording(alice: User) -> Recording:
    return make_recording(alice)


def entry(at: datetime | None = None, **fields: Any) -> AuditEntry:
    return AuditEntry.objects.create(**{"act": Act.VIEWED, "at": at or timezone.now(), **fields})


def shown(client: Client, query: str = "") -> str:
    response = client.get(ADDRESS + query)
    assert response.status_code == 200
    return response.content.decode()


def download(client: Client, name: str) -> str:
    response = client.get(ADDRESS + name)
    assert response.status_code == 200

    async def read() -> bytes:
        return b"".join([piece async for piece in response])

    return async_to_sync(read)().decode()


# Sentences ----------------------------------------------------------------------------------------


def test_an_entry_is_a_sentence_with_where_it_came_from(
    client: Client, alice: User, recording: Recording
) -> None:
    with acts_from("10.0.0.7"):
        note_token("Subtitle tool")
        record_act(act=Act.EXPORTED, actor=alice, on=recording, detail={"format": "srt"})
    text = shown(client)
    assert "<strong>Alice (alice@example.org)</strong> exported" in text
    assert f">{recording.title}</a>" in text
    for part in ("Recording", "format: srt", "by token “Subtitle tool”", "from 10.0.0.7"):
        assert f">{part}</span>" in text


def test_what_has_no_name_is_called_by_its_kind(client: Client, recording: Recording) -> None:
    number = str(recording.id)
    entry(act=Act.PURGED, subject_kind="upload", subject_id=number, subject_name=f"upload {number}")
    text = shown(client)
    assert "<strong>The server</strong> forgot" in text
    assert ">an upload</a>" in text
    assert f">upload {number}" not in text


def test_a_failed_log_in_is_nobodys_and_a_password_ones_own(client: Client, alice: User) -> None:
    record_act(act=Act.LOG_IN_FAILED, actor=None, on=alice)
    record_act(act=Act.PASSWORD_CHANGED, actor=alice, on=alice)
    text = shown(client)
    assert "<strong>Somebody</strong> failed to log in as" in text
    assert "<strong>Alice (alice@example.org)</strong> changed a password</p>" in text


def test_details_without_a_value_are_words_or_left_out(client: Client) -> None:
    detail = {"team": "", "audio_days": None, "trash_days": 30, "taken_back": True}
    entry(act=Act.POLICY_CHANGED, detail=detail)
    text = shown(client)
    assert "audio days: no limit · trash days: 30 · taken back: yes" in text
    assert "team:" not in text


@pytest.mark.parametrize(
    ("act", "kind", "detail", "said"),
    [
        (Act.TRASHED, "recording", {}, "moved Interview to the trash"),
        (Act.HELD, "recording", {"reason": "Case 7"}, "put Interview on hold. reason: Case 7"),
        (Act.RELEASED, "recording", {}, "released Interview from hold"),
        (Act.OPENED, "livesession", {}, "opened Interview as administrator"),
        (
            Act.SHARED,
            "recording",
            {"with": "Bob", "can_edit": False},
            "shared Interview with Bob. can edit: no",
        ),
        (Act.UNSHARED, "recording", {"with": "Bob"}, "stopped sharing Interview with Bob"),
        (Act.EDITED, "recording", {"what": "title"}, "renamed Interview"),
        (
            Act.POLICY_CHANGED,
            "recording",
            {"until": "2026-12-05T03:00:00+00:00"},
            "changed how long Interview is kept. until: 5 December 2026, 03:00",
        ),
        (
            Act.POLICY_CHANGED,
            "retentionpolicy",
            {"team": "", "trash_days": 7},
            "changed the retention rules of the organisation. trash days: 7",
        ),
        (
            Act.POLICY_CHANGED,
            "retentionpolicy",
            {"team": "Board", "taken_back": True},
            "took back a change of the retention rules of the team Board",
        ),
        (
            Act.PURGED,
            "recording",
            {"what": "audio"},
            "deleted the audio of Interview, as the rules say",
        ),
        (Act.PURGED, "purgerun", {"audio": 0, "deleted": 2}, "ran the purge. deleted: 2"),
        (
            Act.PURGED,
            "",
            {"what": "audit log", "count": 3},
            "deleted old entries of the audit log. count: 3",
        ),
        (Act.INVITED, "user", {"by": "link"}, "made a link to choose a password for Interview"),
        (
            Act.TEAM_CHANGED,
            "team",
            {"change": "joined", "person": "bob@example.org"},
            "added bob@example.org to the team Interview",
        ),
        (
            Act.GLOSSARY_CHANGED,
            "",
            {"added": 2, "changed": 1, "removed": 0},
            "changed the glossary. added: 2 · changed: 1",
        ),
        (
            Act.ENGINE_ORDERED,
            "",
            {"engine": "cpu", "order": "drain"},
            "told the engine cpu to drain",
        ),
        (Act.TOKEN_MADE, "apitoken", {}, "made the token Interview"),
        (Act.JOB_ASKED, "recording", {}, "asked for a transcription of Interview"),
    ],
)
def test_each_act_is_a_sentence(act: Act, kind: str, detail: dict[str, Any], said: str) -> None:
    told = AuditEntry(
        act=act, subject_kind=kind, subject_name="Interview" if kind else "", detail=detail
    )
    line = line_of(told)
    words = f"{line.act} {line.thing}{line.rest}".strip()
    assert f"{words}. {line.detail}".removesuffix(". ") == said


def test_every_act_has_a_sentence_with_and_without_a_thing() -> None:
    for act in Act:
        for kind, name in (("recording", "Interview"), ("", "")):
            line = line_of(AuditEntry(act=act, subject_kind=kind, subject_name=name))
            assert line.act
            assert "{" not in line.act + line.rest


def test_who_reads_by_a_link_is_a_guest(client: Client, recording: Recording) -> None:
    record_act(act=Act.VIEWED, actor=None, on=recording, detail={"by": "link"})
    text = shown(client)
    assert "<strong>A guest with a link</strong> viewed" in text
    assert "by: link" not in text


def test_acts_to_choose_from_are_in_the_order_of_their_words(client: Client) -> None:
    choices = re.findall(r'<option value="[a-z_]+">([^<]+)</option>', shown(client))
    assert len(choices) == len(Act)
    assert choices == sorted(choices)


def test_names_are_text(client: Client, alice: User) -> None:
    entry(actor_name="<b>x</b>", subject_kind="recording", subject_id="1", subject_name="<i>y</i>")
    text = shown(client)
    assert "<b>x</b>" not in text
    assert "<i>y</i>" not in text


def test_an_empty_log_says_so(client: Client) -> None:
    assert "Nothing has happened yet." in shown(client)
    assert "No entry is like this." in shown(client, "?person=nobody")


# Search -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?person=alice", {"viewed", "played"}),
        ("?person=Alice", {"viewed", "played"}),
        ("?person=gone@", {"deleted"}),
        ("?thing=talk", {"played"}),
        ("?act=deleted", {"deleted"}),
        ("?person=alice&act=played&thing=Talk", {"played"}),
        ("?person=bob", set()),
        ("?about=recording:7", {"played"}),
        ("?about=user:7", set()),
    ],
)
def test_it_is_searched_by_person_thing_and_act(
    client: Client, alice: User, query: str, found: set[str]
) -> None:
    entry(act=Act.VIEWED, actor=alice, actor_name=alice.email)
    about = {"subject_kind": "recording", "subject_id": "7", "subject_name": "Talk"}
    entry(act=Act.PLAYED, actor=alice, actor_name=alice.email, **about)
    entry(act=Act.DELETED, actor_id=999_999, actor_name="gone@example.org")
    text = shown(client, query)
    assert {act for act in ("viewed", "played", "deleted") if f"</strong> {act}" in text} == found


def test_days_are_those_of_the_person_who_looks(client: Client, admin: User) -> None:
    User.objects.filter(pk=admin.pk).update(time_zone="Asia/Tokyo")
    # In Tokyo the fifth of March lasts from 15:00 of the fourth to 15:00 of the fifth.
    for hour, act in ((14, Act.VIEWED), (15, Act.PLAYED), (38, Act.EXPORTED), (39, Act.DELETED)):
        entry(datetime(2026, 3, 4, tzinfo=UTC) + timedelta(hours=hour), act=act)
    text = shown(client, "?since=2026-03-05&until=2026-03-05")
    acts = ("viewed", "played", "exported", "deleted")
    assert [act for act in acts if f"</strong> {act}" in text] == ["played", "exported"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?since=yesterday", "Enter a valid date."),
        ("?since=2026-03-05&until=2026-03-04", "This day is before the first one."),
        ("?act=dreamt", "Select a valid choice."),
        ("?about=';drop", ""),
    ],
)
def test_a_search_that_is_none_is_answered_in_words(client: Client, query: str, said: str) -> None:
    response = client.get(ADDRESS + query)
    assert response.status_code == 400
    assert said in response.content.decode()
    for name in ("export.csv", "export.json"):
        assert client.get(ADDRESS + name + query).status_code == 400


# Pages --------------------------------------------------------------------------------------------


def test_older_entries_follow_without_gap_or_repetition(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "ENTRIES_A_PAGE", 3)
    moment = timezone.now()
    about = {"subject_kind": "recording", "subject_id": "9"}
    for number in range(8):  # some at the very same moment
        at = moment - timedelta(seconds=number // 3)
        entry(at, act=Act.DELETED, subject_name=f"R{number}", **about)
    seen: list[str] = []
    query = "?act=deleted"
    while True:
        response = client.get(ADDRESS + query)
        seen += [line.thing for line in response.context["lines"]]
        entry(act=Act.DELETED, subject_name="later", **about)
        if not response.context["older"]:
            break
        query = f"?{response.context['older']}"
    assert sorted(seen) == [f"R{number}" for number in range(8)]
    assert "?act=deleted" in shown(client, query)


@pytest.mark.parametrize("after", ["x", "1-", "-", "99999999999999999999999-1", "1-1-1"])
def test_a_place_that_is_none_begins_anew(client: Client, after: str) -> None:
    entry(act=Act.DELETED)
    assert "</strong> deleted" in shown(client, f"?after={after}")


def test_the_number_of_queries_does_not_grow(
    client: Client, alice: User, bob: User, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    for person in (alice, bob) * 10:
        entry(actor=person, actor_name=person.email)
    with django_assert_max_num_queries(3):  # session, person, entries
        shown(client)


# Downloads ----------------------------------------------------------------------------------------


def test_a_table_holds_all_that_was_found_and_no_formula(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "ENTRIES_A_FETCH", 2)
    for number in range(5):
        entry(subject_name="=cmd()", detail={"n": number}, address="10.0.0.7")
    entry(act=Act.DELETED)
    text = download(client, "export.csv?act=viewed")
    assert text.startswith("\ufeffat,person,")
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert [json.loads(row["detail"])["n"] for row in rows] == [4, 3, 2, 1, 0]
    assert {row["thing"] for row in rows} == {"'=cmd()"}
    assert {row["address"] for row in rows} == {"10.0.0.7"}


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_json_list_holds_all_that_was_found(
    client: Client, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "ENTRIES_A_FETCH", 2)
    for number in range(count):
        entry(subject_name="=cmd()", detail={"n": number})
    listed = json.loads(download(client, "export.json?act=viewed"))
    assert [item["detail"]["n"] for item in listed] == list(reversed(range(count)))
    assert all(item["thing"] == "=cmd()" for item in listed)


def test_a_long_download_comes_in_small_pieces(client: Client) -> None:
    AuditEntry.objects.bulk_create(
        AuditEntry(act=Act.VIEWED, subject_name="会" * 300) for _ in range(1200)
    )
    response = client.get(ADDRESS + "export.csv")

    async def sizes() -> list[int]:
        return [len(piece) async for piece in response]

    pieces = async_to_sync(sizes)()
    assert len(pieces) > 4
    assert max(pieces) <= 256 * 1024


def test_a_download_is_told_itself(client: Client, admin: User) -> None:
    download(client, "export.csv")
    told = AuditEntry.objects.get()
    assert (told.actor, told.act, told.detail["what"]) == (admin, "exported", "audit log")
