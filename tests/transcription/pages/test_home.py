"""Home: what a person sees in the list, and what not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.fakes.live import make_session
from tests.fakes.pages import make_recording
from tests.fakes.shares import make_team, share
from transcription.models import (
    Job,
    JobState,
    LiveSession,
    LiveState,
    Recording,
    RecordingState,
    Upload,
    UploadState,
    Visibility,
)
from transcription.pages import home
from transcription.queue import Task
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]


def text_of(client: Client, path: str = "/") -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_lists_own_and_shared_recordings_with_a_line_of_text(
    alice: User, bob: User, client_of: ClientOf
) -> None:
    make_recording(alice, "Planning", "We begin with the move.")
    make_recording(bob, "For everybody", is_organisation_wide=True)
    page = text_of(client_of(alice))
    assert "Planning" in page
    assert "We begin with the move." in page
    assert "For everybody" in page
    assert "Ready" in page


def test_list_says_what_is_shared_and_how(alice: User, bob: User, client_of: ClientOf) -> None:
    make_recording(alice, "Diary")
    assert "Only you" in text_of(client_of(alice))
    share(make_recording(alice, "Planning"), with_=make_team("Sales", bob))
    session = make_session(alice, title="Weekly")
    LiveSession.objects.update(state=LiveState.LIVE)
    share(session, with_=bob)
    assert "You, shared" in text_of(client_of(alice))
    page = text_of(client_of(bob))
    assert "Planning" in page
    assert "Weekly" in page
    assert "Diary" not in page
    assert page.count("Shared with you") == 2


def test_line_of_text_is_more_than_a_first_short_segment(alice: User, client_of: ClientOf) -> None:
    make_recording(alice, "Reading", "Lobsters.", "They walk in a row.", "Nobody counts them.")
    make_recording(alice, "朗读", "龙虾。", "它们排成一行。")
    page = text_of(client_of(alice))
    assert "Lobsters. They walk in a row. Nobody counts them." in page
    assert "龙虾。它们排成一行。" in page


def test_list_tells_and_follows_when_it_was_recorded_as_the_recording_s_page_does(
    alice: User, client_of: ClientOf
) -> None:
    """A live session becomes a recording when it ends, long after it began."""
    began = timezone.now() - timedelta(hours=3)
    make_recording(alice, "Uploaded meanwhile")
    live = make_recording(alice, "Long meeting")
    Recording.objects.filter(id=live.id).update(recorded_at=began)
    page = text_of(client_of(alice))
    assert page.index("Uploaded meanwhile") < page.index("Long meeting")
    shown = f'<time datetime="{began.isoformat()}"'
    assert shown in page[page.index("Long meeting") :]
    assert shown in text_of(client_of(alice), f"/recordings/{live.id}/")


def test_recording_without_speech_says_so_in_the_list(alice: User, client_of: ClientOf) -> None:
    make_recording(alice, "Hum", notice="No speech was found in this recording.")
    assert "No speech was found" in text_of(client_of(alice))


def test_stranger_sees_nothing_of_a_private_recording(
    alice: User, charlie: User, client_of: ClientOf
) -> None:
    make_recording(alice, "Secret plans", "hidden words")
    for path in ("/", "/?q=Secret", "/?q=hidden"):
        page = text_of(client_of(charlie), path)
        assert "Secret plans" not in page
        assert "hidden words" not in page


def test_anonymous_is_sent_to_log_in_and_back(client_of: ClientOf, db: None) -> None:
    response = client_of(None).get("/?q=north")
    assert response.status_code == 302
    assert response["Location"] == "/accounts/login/?next=/%3Fq%3Dnorth"


def test_shortened_address_of_a_recording_leads_to_the_list(
    alice: User, client_of: ClientOf
) -> None:
    assert client_of(alice).get("/recordings/")["Location"] == "/"


def test_empty_state_tells_a_newcomer_what_to_do(alice: User, client_of: ClientOf) -> None:
    page = text_of(client_of(alice))
    assert "No recordings yet" in page
    assert "Try a sample recording" in page


def test_search_finds_words_of_the_transcript_and_marks_them(
    alice: User, client_of: ClientOf
) -> None:
    make_recording(alice, "Weekly", "Good morning.", "The lifts on the North side.")
    make_recording(alice, "Other", "Something else.")
    page = text_of(client_of(alice), "/?q=north")
    assert "The lifts on the <mark>North</mark> side." in page
    assert "Other" not in page


@pytest.mark.parametrize("query", ["%", "_", "'", '"><script>', "\0", "x" * 5000, "会议"])
def test_search_takes_any_text(alice: User, client_of: ClientOf, query: str) -> None:
    make_recording(alice, "Weekly", "Good morning.")
    response = client_of(alice).get("/", {"q": query})
    assert response.status_code == 200
    assert b"<script>" not in response.content


def test_title_with_html_is_text(alice: User, client_of: ClientOf) -> None:
    make_recording(alice, "<img src=x onerror=alert(1)>", "<b>bold</b> words")
    page = text_of(client_of(alice))
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<b>bold" not in page


@pytest.mark.parametrize("number", ["0", "-1", "99999999999999999999", "x", ""])
def test_page_number_out_of_range_shows_a_page(
    alice: User, client_of: ClientOf, number: str
) -> None:
    make_recording(alice, "Weekly")
    assert "Weekly" in text_of(client_of(alice), f"/?page={number}")


def test_state_is_words_with_a_share_and_a_time(alice: User, client_of: ClientOf) -> None:
    recording = make_recording(alice, "Long one", state=RecordingState.TRANSCRIBING)
    Job.objects.create(
        recording=recording,
        state=JobState.RUNNING,
        audio_done_ms=420_000,
        audio_total_ms=1_000_000,
        work_seconds=130,
    )
    assert "Transcribing · 42 % · about 3 min left" in text_of(client_of(alice))


def test_problem_is_said_in_the_list(alice: User, client_of: ClientOf) -> None:
    make_recording(
        alice, "Broken", state=RecordingState.ATTENTION, problem="This video has no sound."
    )
    page = text_of(client_of(alice))
    assert "Needs attention" in page
    assert "This video has no sound." in page


def test_live_now_tells_about_how_many_read(
    alice: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for title in ("Planning", "Reading hour"):
        LiveSession.objects.create(owner=alice, title=title, state=LiveState.LIVE)
    monkeypatch.setattr(home, "count_readers", lambda sessions: [1, 20])
    page = text_of(client_of(alice))
    assert "1 reader<" in page
    assert "20 readers<" in page


def test_live_now_has_sessions_that_run(alice: User, bob: User, client_of: ClientOf) -> None:
    for title, state, visibility in (
        ("Open", LiveState.LIVE, Visibility.ORGANISATION),
        ("Private", LiveState.LIVE, Visibility.PRIVATE),
        ("Over", LiveState.ENDED, Visibility.ORGANISATION),
    ):
        LiveSession.objects.create(
            owner=bob,
            title=f"{title} session",
            state=state,
            visibility=visibility,
            started_at=timezone.now(),
        )
    page = text_of(client_of(alice))
    assert "Open session" in page
    assert "Private session" not in page
    assert "Over session" not in page


def test_unfinished_and_refused_uploads_survive_a_reload(alice: User, client_of: ClientOf) -> None:
    Upload.objects.create(owner=alice, display_name="board.mp4", length_bytes=100, offset_bytes=42)
    Upload.objects.create(
        owner=alice,
        display_name="slides.mp4",
        length_bytes=9,
        state=UploadState.REFUSED,
        problem="This video has no sound.",
    )
    page = text_of(client_of(alice))
    assert 'data-name="board.mp4"' in page
    assert 'data-offset="42"' in page
    assert 'data-problem="This video has no sound."' in page


def test_fragment_is_the_list_alone_and_polls_only_while_something_moves(
    alice: User, client_of: ClientOf
) -> None:
    recording = make_recording(alice, "Weekly")
    client = client_of(alice)
    calm = client.get("/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in calm
    assert "every 5s" not in calm
    recording.state = RecordingState.QUEUED
    recording.save()
    assert "every 5s" in client.get("/", headers={"HX-Request": "true"}).content.decode()


def test_number_of_queries_does_not_grow_with_the_list(
    alice: User,
    client_of: ClientOf,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:
    for number in range(30):
        recording = make_recording(alice, f"Recording {number}", "Some words.")
        Job.objects.create(recording=recording, state=JobState.DONE)
    client = client_of(alice)
    with django_assert_max_num_queries(10):  # type: ignore[attr-defined]
        page = text_of(client)
    assert page.count("row-recording") == 25


def test_sample_goes_down_the_road_of_every_upload(
    alice: User,
    client_of: ClientOf,
    sent: list[tuple[str, ...]],
    django_capture_on_commit_callbacks: Callable[..., object],
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        response = client_of(alice).post("/sample/", follow=True)
    upload = Upload.objects.get(owner=alice)
    assert upload.state == UploadState.CHECKING
    assert upload.part_path.stat().st_size == upload.length_bytes > 100_000
    assert sent == [(Task.CHECK_UPLOAD.value, str(upload.id))]
    assert "The sample recording is on its way" in response.content.decode()


def test_sample_is_asked_for_by_post(alice: User, client_of: ClientOf) -> None:
    assert client_of(alice).get("/sample/").status_code == 405
