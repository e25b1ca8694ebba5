"""A recording behind a link: its page, its audio, its downloads, and refusals in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import structlog
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.fakes.live import make_session
from tests.fakes.pages import write_transcript
from tests.fakes.recordings import make_recording
from transcription.models import Recording, RecordingState, ShareLink
from transcription.services import share_links
from webapp.accounts.models import Act, AuditEntry, User
from webapp.logs import without_keys

ClientOf = Callable[[User | None], Client]

BEHIND = ("", "media", "peaks.json", "export.txt", "export.srt", "export.vtt", "export.json")


@pytest.fixture
def recording(alice: User) -> Recording:
    made = make_recording(
        alice, title="Planning", content=b"0123456789", state=RecordingState.READY
    )
    (made.folder / "peaks.json").write_text("[1, 2]")
    write_transcript(made, "Good morning.")
    return made


@pytest.fixture
def token(recording: Recording) -> str:
    return share_links.create_share_link(thing=recording, hours=24, made_by=recording.owner)[1]


@pytest.fixture(autouse=True)
def forget_wrong_tokens() -> Iterator[None]:
    yield
    cache.delete("wrong-links:127.0.0.1")


def test_the_owner_makes_a_link_that_a_guest_opens(
    recording: Recording, alice: User, client_of: ClientOf
) -> None:
    page = client_of(alice).post(f"/recordings/{recording.id}/share/", {"hours": "720"})
    shown = re.search(r"http://testserver(/r/[\w-]{22}/)", page.content.decode())
    assert shown is not None
    text = client_of(None).get(shown[1]).content.decode()
    assert "Planning" in text
    assert "Good morning." in text
    assert "Words with dots below are uncertain." in text


@pytest.mark.parametrize("path", BEHIND)
def test_it_needs_no_log_in_and_tells_no_one(
    token: str, recording: Recording, client_of: ClientOf, path: str
) -> None:
    response = client_of(None).get(f"/r/{token}/{path}")
    assert response.status_code == 200
    assert response["Referrer-Policy"] == "no-referrer"
    assert response["X-Robots-Tag"] == "noindex, nofollow"
    cache_control = response["Cache-Control"]
    assert "no-store" in cache_control or "no-cache" in cache_control
    assert without_keys(f"GET /r/{token}/{path}") == "GET /r/[private]"
    if not response.streaming:
        assert token not in response.content.decode()


@pytest.mark.parametrize(
    ("closed_by", "said"),
    [
        ("trash", "What this link led to was deleted."),
        ("account", "This link no longer works."),
    ],
)
def test_a_link_that_its_owner_did_not_withdraw_does_not_say_so(
    token: str, recording: Recording, alice: User, client_of: ClientOf, closed_by: str, said: str
) -> None:
    if closed_by == "trash":
        recording.trashed_at = timezone.now()
        recording.save()
    else:
        alice.is_active = False
        alice.save()
    response = client_of(None).get(f"/r/{token}/")
    assert response.status_code == 404
    page = response.content.decode()
    assert said in page
    assert 'href="/"' not in page


def test_the_page_leads_nowhere_else_also_for_its_owner(
    token: str, recording: Recording, alice: User, client_of: ClientOf
) -> None:
    for person in (None, alice):
        page = client_of(person).get(f"/r/{token}/").content.decode()
        assert str(recording.id) not in page
        assert 'href="/"' not in page
        assert "<form" not in page


def test_the_audio_comes_in_ranges(token: str, client_of: ClientOf) -> None:
    response = client_of(None).get(f"/r/{token}/media", headers={"range": "bytes=2-4"})
    assert response.status_code == 206
    assert response["Content-Range"] == "bytes 2-4/10"
    assert response["Content-Length"] == "3"


@pytest.mark.parametrize("path", BEHIND)
def test_refused_links_say_why(
    token: str,
    recording: Recording,
    alice: User,
    client_of: ClientOf,
    settings: Settings,
    path: str,
) -> None:
    client = client_of(None)

    def refusal(address: str = f"/r/{token}/{path}") -> str:
        response = client.get(address)
        assert response.status_code == 404
        assert response["Referrer-Policy"] == "no-referrer"
        return response.content.decode()

    assert "leads nowhere" in refusal(f"/r/wrong/{path}")
    captions = share_links.create_share_link(thing=make_session(alice), hours=4, made_by=alice)[1]
    assert "leads nowhere" in refusal(f"/r/{captions}/{path}")
    Recording.objects.update(trashed_at=timezone.now())
    assert "was deleted" in refusal()
    Recording.objects.update(trashed_at=None)
    links = ShareLink.objects.filter(recording=recording)
    links.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert "expired" in refusal()
    links.update(revoked_at=timezone.now())
    assert "withdrawn" in refusal()
    settings.SITE = settings.SITE.model_copy(update={"share_links": False})
    assert "switched off" in refusal()


def test_a_link_to_a_recording_opens_no_captions(
    token: str, recording: Recording, client_of: ClientOf
) -> None:
    for path in ("", "room/", "status/", "captions.txt"):
        assert client_of(None).get(f"/s/{token}/{path}").status_code == 404


def test_it_ends_with_its_owner_s_account(
    token: str, recording: Recording, alice: User, client_of: ClientOf
) -> None:
    alice.is_active = False
    alice.save()
    assert client_of(None).get(f"/r/{token}/media").status_code == 404


def test_the_owner_withdraws_it(
    token: str, recording: Recording, alice: User, bob: User, client_of: ClientOf
) -> None:
    link = recording.links.get()
    assert client_of(bob).post(f"/links/{link.id}/revoke/").status_code == 404
    answer = client_of(alice).post(f"/links/{link.id}/revoke/")
    assert answer["Location"] == f"/recordings/{recording.id}/share/"
    assert client_of(None).get(f"/r/{token}/").status_code == 404


def test_guessing_is_slowed_down_together_with_links_to_captions(
    token: str, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_links, "MAX_WRONG_TOKENS", 2)
    client = client_of(None)
    for address in ("/r/wrong/media", "/s/wrong/"):
        assert client.get(address).status_code == 404
    for path in ("", "media"):
        assert client.get(f"/r/{token}/{path}").status_code == 429


def test_links_take_no_post_and_no_unknown_format(token: str, client_of: ClientOf) -> None:
    client = client_of(None)
    for path in ("", "media", "export.txt"):
        assert client.post(f"/r/{token}/{path}").status_code == 405
    assert client.get(f"/r/{token}/export.exe").status_code == 404


def test_what_is_not_finished_says_so_and_the_audio_that_went_too(
    token: str, recording: Recording, client_of: ClientOf
) -> None:
    Recording.objects.update(state=RecordingState.TRANSCRIBING, audio_removed_at=timezone.now())
    page = client_of(None).get(f"/r/{token}/").content.decode()
    assert "still being written" in page
    assert re.search(r"until \d+ \w+, \d\d:\d\d [A-Z]", page)
    assert "no longer kept" in page
    assert 'src="media"' not in page


def test_what_waits_does_not_say_that_it_is_being_written(token: str, client_of: ClientOf) -> None:
    Recording.objects.update(state=RecordingState.QUEUED)
    page = client_of(None).get(f"/r/{token}/").content.decode()
    assert "waits to be transcribed" in page
    assert "still being written" not in page


def test_use_is_told_once_in_the_audit_log_and_the_log_has_no_token(
    token: str, recording: Recording, client_of: ClientOf
) -> None:
    client = client_of(None)
    with structlog.testing.capture_logs() as lines:
        for _ in range(2):
            for path in ("", "media", "export.txt"):
                client.get(f"/r/{token}/{path}")
    assert {
        "event": "share_link_opened",
        "leads_to": str(recording.id),
        "log_level": "info",
    } in lines
    assert token not in str(lines)
    told = AuditEntry.objects.exclude(act=Act.LINK_MADE)
    assert sorted(told.values_list("act", "actor", "detail__by")) == [
        (Act.EXPORTED, None, "link"),
        (Act.PLAYED, None, "link"),
        (Act.VIEWED, None, "link"),
    ]
