"""The page of a recording, its fragments, and the acts of its owner."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import pytest
from django.test import Client

from tests.fakes.pages import make_recording, write_transcript
from tests.fakes.shares import make_team, share
from transcription.models import (
    Job,
    JobState,
    Recording,
    RecordingState,
    RevisionKind,
    SegmentMark,
)
from transcription.services.jobs import SPEAKERS
from transcription.services.share_links import create_share_link, revoke_share_link
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]

READS = ("", "status/", "transcript/")
ACTS = ("rename/", "share/audience/", "share/add/", "cancel/", "retry/", "delete/")


@pytest.fixture
def recording(alice: User) -> Recording:
    return make_recording(alice, "Weekly", "Good morning.", "The lifts are not ready.")


def address(recording: Recording, part: str = "") -> str:
    return f"/recordings/{recording.id}/{part}"


def test_page_has_player_transcript_and_downloads(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    page = client_of(alice).get(address(recording)).content.decode()
    assert "Good morning." in page
    assert 'data-words="0:0:4 200:5:8"' in page
    assert f'src="/recordings/{recording.id}/media"' in page
    for kind in ("txt", "srt", "vtt", "json"):
        assert f"/recordings/{recording.id}/export.{kind}" in page
    assert "Draft" in page
    assert str(None) not in page


def test_colleague_reads_what_is_shared_but_gets_no_acts(
    bob: User, recording: Recording, client_of: ClientOf
) -> None:
    recording.is_organisation_wide = True
    recording.save()
    page = client_of(bob).get(address(recording)).content.decode()
    assert "Good morning." in page
    assert "Delete recording" not in page
    assert address(recording, "share/") not in page


@pytest.mark.parametrize("name", ["rename", "terms", "again", "keep", "delete"])
def test_without_script_an_address_opens_a_dialog(
    alice: User, recording: Recording, client_of: ClientOf, name: str
) -> None:
    closed, opened = (
        f'<dialog class="dialog" id="{name}" ',
        f'<dialog class="dialog" id="{name}" open ',
    )
    page = client_of(alice).get(address(recording)).content.decode()
    assert f'href="?open={name}#{name}"' in page
    assert closed in page
    assert " open " not in page
    page = client_of(alice).get(address(recording), {"open": name}).content.decode()
    assert page.count(opened) == 1
    assert f'<form method="dialog" id="{name}-closes">' in page


def test_what_is_on_hold_does_not_offer_to_be_deleted(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    assert "Delete recording" in client_of(alice).get(address(recording)).content.decode()
    recording.is_held, recording.held_reason = True, "A dispute"
    recording.save()
    page = client_of(alice).get(address(recording)).content.decode()
    assert "Delete recording" not in page
    assert "Nothing of it is deleted: A dispute" in page


def test_page_says_who_reads(
    alice: User, bob: User, charlie: User, recording: Recording, client_of: ClientOf
) -> None:
    def page_of(person: User) -> str:
        return client_of(person).get(address(recording)).content.decode()

    assert "Only you" in page_of(alice)
    link, _ = create_share_link(thing=recording, hours=24, made_by=alice)
    assert "Only you, and whoever has the link<" in page_of(alice)
    assert "You, shared" in client_of(alice).get("/").content.decode()
    revoke_share_link(link=link, revoked_by=alice)
    assert "You, shared" not in client_of(alice).get("/").content.decode()
    share(recording, with_=bob)
    assert "Shared with Bob<" in page_of(alice)
    assert "Shared with you<" in page_of(bob)
    for name in ("Sales", "Support"):
        share(recording, with_=make_team(name, charlie))
    assert "Shared with Bob, Sales and 1 more<" in page_of(alice)
    Recording.objects.update(is_organisation_wide=True)
    for person in (alice, bob, charlie):
        assert "Everybody who can log in<" in page_of(person)


def test_an_editor_changes_the_text_s_surroundings_and_neither_shares_nor_deletes(
    bob: User, recording: Recording, client_of: ClientOf
) -> None:
    share(recording, with_=bob, can_edit=True)
    client = client_of(bob)
    page = client.get(address(recording)).content.decode()
    assert address(recording, "rename/") in page
    assert address(recording, "retry/") in page
    assert address(recording, "share/") not in page
    assert address(recording, "delete/") not in page
    assert client.post(address(recording, "rename/"), {"title": "Better"}).status_code == 302
    assert client.post(address(recording, "terms/"), {"terms": "Okonkwo"}).status_code == 302
    assert client.post(address(recording, "delete/")).status_code == 404
    recording.refresh_from_db()
    assert recording.title == "Better"


@pytest.mark.parametrize("part", READS)
def test_stranger_gets_404_from_reads(
    charlie: User, recording: Recording, client_of: ClientOf, part: str
) -> None:
    response = client_of(charlie).get(address(recording, part))
    assert response.status_code == 404
    assert b"Weekly" not in response.content


@pytest.mark.parametrize("part", ACTS)
def test_stranger_gets_404_from_acts(
    charlie: User, recording: Recording, client_of: ClientOf, part: str
) -> None:
    response = client_of(charlie).post(
        address(recording, part), {"title": "Mine", "audience": "everybody"}
    )
    assert response.status_code == 404
    recording.refresh_from_db()
    assert recording.title == "Weekly"


@pytest.mark.parametrize("part", ACTS)
def test_colleague_with_reading_rights_gets_404_from_acts(
    bob: User, recording: Recording, client_of: ClientOf, part: str
) -> None:
    recording.is_organisation_wide = True
    recording.save()
    assert client_of(bob).post(address(recording, part), {"title": "Mine"}).status_code == 404


@pytest.mark.parametrize("part", READS)
def test_anonymous_is_sent_to_log_in(recording: Recording, client_of: ClientOf, part: str) -> None:
    response = client_of(None).get(address(recording, part))
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/?next=/recordings/")


@pytest.mark.parametrize("part", ACTS)
def test_acts_are_posts(alice: User, recording: Recording, client_of: ClientOf, part: str) -> None:
    assert client_of(alice).get(address(recording, part)).status_code == 405


@pytest.mark.parametrize("part", ACTS)
def test_forged_post_is_refused(alice: User, recording: Recording, part: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    response = client.post(address(recording, part), {"title": "Forged"})
    assert response.status_code == 403
    assert "This page was open too long" in response.content.decode()


def test_unknown_recording_is_404(alice: User, client_of: ClientOf) -> None:
    assert client_of(alice).get(f"/recordings/{uuid.uuid4()}/").status_code == 404


def test_html_in_title_text_and_speaker_is_text(alice: User, client_of: ClientOf) -> None:
    evil = "<script>alert(1)</script>"
    recording = make_recording(alice, evil, f"{evil} said", display_name=evil, notice=evil)
    recording.current_revision.segments.update(speaker=evil)  # type: ignore[union-attr]
    for part in ("", "status/?shown=", "transcript/"):
        page = client_of(alice).get(address(recording, part)).content.decode()
        assert "<script>alert" not in page


def test_number_of_queries_does_not_grow_with_the_transcript(
    alice: User,
    client_of: ClientOf,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:
    recording = make_recording(alice, "Long", *(f"Sentence {number}." for number in range(300)))
    client = client_of(alice)
    client.get(address(recording))  # told to the audit log
    with django_assert_max_num_queries(17):  # type: ignore[attr-defined]
        assert b"Sentence 299." in client.get(address(recording)).content


def test_number_of_queries_while_it_runs_is_bounded(
    alice: User,
    recording: Recording,
    client_of: ClientOf,
    django_assert_max_num_queries: Callable[[int], object],
) -> None:
    Job.objects.create(recording=recording, state=JobState.QUEUED)
    client = client_of(alice)
    with django_assert_max_num_queries(16):  # type: ignore[attr-defined]
        client.get(address(recording, "status/?shown=ready"))


def test_details_name_the_versions_once_there_are_several(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    client = client_of(alice)
    assert "Versions" not in client.get(address(recording)).content.decode()
    write_transcript(recording, "Anew.", number=2)
    page = client.get(address(recording)).content.decode()
    assert page.count("<dt>Versions</dt>") == 1
    assert f'<a href="{address(recording, "versions/1/")}">Draft <span' in page


@pytest.mark.parametrize(
    ("container", "codec", "said"),
    [("mp3", "mp3", "MP3"), ("mov", "aac", "MOV · AAC"), ("", "", "")],
)
def test_details_name_a_format_once(
    alice: User,
    recording: Recording,
    client_of: ClientOf,
    container: str,
    codec: str,
    said: str,
) -> None:
    Recording.objects.update(container=container, codec=codec)
    page = client_of(alice).get(address(recording)).content.decode()
    assert (f"<dt>Format</dt><dd>{said}</dd>" in page) == bool(said)


def test_language_that_somebody_chose_is_not_called_detected(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    Recording.objects.update(language="en", language_confidence=1.0)
    client = client_of(alice)
    assert "English (detected, 100 % sure)" in client.get(address(recording)).content.decode()
    job = Job.objects.create(recording=recording, language="en", state=JobState.DONE)
    recording.revisions.update(job=job)
    assert "<dd>English</dd>" in client.get(address(recording)).content.decode()


# Fragments ----------------------------------------------------------------------------------------


def test_status_says_share_time_and_stage(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    Recording.objects.update(state=RecordingState.TRANSCRIBING)
    Job.objects.create(
        recording=recording,
        state=JobState.RUNNING,
        audio_done_ms=30_000,
        audio_total_ms=60_000,
        work_seconds=300,
    )
    shown = f"transcribing.{recording.current_revision_id}.{recording.player_name}"
    page = client_of(alice).get(address(recording, f"status/?shown={shown}")).content.decode()
    assert "Transcribing · 50 % · about 5 min left" in page
    assert "Cancel transcription" in page
    assert 'data-open="yes"' in page
    assert "hx-swap-oob" not in page


def test_status_brings_notes_when_speakers_are_looked_for(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    """The text is complete from then on: the note that its end is a draft must go."""
    Recording.objects.update(state=RecordingState.TRANSCRIBING)
    Job.objects.create(recording=recording, state=JobState.RUNNING, stage=SPEAKERS)
    shown = f"transcribing.{recording.current_revision_id}.{recording.player_name}"
    page = client_of(alice).get(address(recording, f"status/?shown={shown}")).content.decode()
    assert 'id="transcript-notes" hx-swap-oob' in page


def test_status_says_the_place_in_the_queue(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    first = make_recording(alice, "First", duration_ms=1000)
    Recording.objects.update(state=RecordingState.QUEUED)
    Job.objects.create(recording=first, audio_total_ms=1000)
    Job.objects.create(recording=recording, audio_total_ms=60_000)
    page = client_of(alice).get(address(recording, "status/?shown=queued")).content.decode()
    assert "Waiting · 1 before it" in page


@pytest.mark.parametrize("shown", ["transcribing.{revision}", "ready.0", ""])
def test_status_brings_tools_and_details_when_state_or_revision_has_changed(
    alice: User, recording: Recording, client_of: ClientOf, shown: str
) -> None:
    query = shown.format(revision=recording.current_revision_id)
    page = client_of(alice).get(address(recording, f"status/?shown={query}")).content.decode()
    assert page.count("hx-swap-oob") == 5
    assert 'data-open=""' in page


def test_an_open_page_learns_what_its_player_should_play(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    """The track of the transcript, once there is a player of it; until then it asks again."""
    client = client_of(alice)
    tracks = [{"index": 0}, {"index": 1}]
    survey = {"channels": 1, "heard_ms": 1, "speech_ms": [1], "level_db": [-20]}
    Recording.objects.update(
        tracks=[track | survey for track in tracks], track=1, player_name="player-0.m4a"
    )
    page = client.get(address(recording)).content.decode()
    assert 'data-sound="player-0.m4a" data-follows="yes"' in page
    assert "The player changes to this track in a moment." in page
    shown = page.partition("?shown=")[2].partition('"')[0]
    assert (
        "hx-swap-oob"
        not in client.get(address(recording, f"status/?shown={shown}")).content.decode()
    )
    Recording.objects.update(player_name="player-1.webm", duration_ms=90_000, language="de")
    page = client.get(address(recording, f"status/?shown={shown}")).content.decode()
    assert 'data-sound="player-1.webm" data-follows=""' in page
    assert 'data-duration-ms="90000" data-language="de"' in page
    assert 'id="tracks" hx-swap-oob' in page
    assert "in a moment" not in page


def test_transcript_fragment_appends_only_what_is_new(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    response = client_of(alice).get(address(recording, "transcript/?revision=1&after=0"))
    assert response["HX-Reswap"] == "beforeend"
    assert b"Good morning." not in response.content
    assert b"The lifts are not ready." in response.content


def test_transcript_fragment_is_empty_when_nothing_is_new(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    response = client_of(alice).get(address(recording, "transcript/?revision=1&after=1&tail="))
    assert response.status_code == 204


def test_transcript_fragment_replaces_another_revision(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    write_transcript(recording, "A better beginning.", number=2)
    response = client_of(alice).get(address(recording, "transcript/?revision=1&after=1"))
    assert response["HX-Reswap"] == "innerHTML"
    assert b"A better beginning." in response.content


def write_both_passes(recording: Recording) -> None:
    """Two sentences of a draft, of which the first one is refined."""
    job = Job.objects.create(recording=recording, state=JobState.RUNNING)
    write_transcript(
        recording, "Good mourning.", "The lifts.", number=2, job=job, is_complete=False
    )
    write_transcript(
        recording,
        "Good morning.",
        number=3,
        kind=RevisionKind.REFINED,
        job=job,
        is_complete=False,
        replaced_segments=1,
    )


def test_draft_text_stands_after_the_refined(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    write_both_passes(recording)
    page = client_of(alice).get(address(recording)).content.decode()
    refined, tail = page.split('id="transcript-tail"')
    assert "Good morning." in refined
    assert "The lifts." in tail
    assert "Good mourning." not in page
    assert "Grey text at the end is a draft" in page


def test_transcript_fragment_replaces_a_tail_that_has_changed(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    write_both_passes(recording)
    client = client_of(alice)
    response = client.get(address(recording, "transcript/?revision=3&after=0&tail="))
    assert response["HX-Reswap"] == "beforeend"
    fragment = response.content.decode()
    assert 'id="transcript-tail" hx-swap-oob="true"' in fragment
    assert "The lifts." in fragment
    assert "Good morning." not in fragment
    (name,) = re.findall('data-tail="(.+?)"', fragment)
    same = client.get(address(recording, f"transcript/?revision=3&after=0&tail={name}"))
    assert same.status_code == 204


def test_speech_without_words_is_marked_as_unclear(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    recording.current_revision.segments.filter(index=1).update(  # type: ignore[union-attr]
        text="", words=[], mark=SegmentMark.UNCLEAR
    )
    page = client_of(alice).get(address(recording)).content.decode()
    assert "is-unclear" in page
    assert ">[unclear]</span>" in page


def test_a_sentence_in_another_language_says_so_to_the_browser(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    recording.current_revision.segments.filter(index=1).update(language="de")  # type: ignore[union-attr]
    page = client_of(alice).get(address(recording)).content.decode()
    assert page.count('lang="de"') == 1


@pytest.mark.parametrize(
    "query", ["revision=x&after=y", "after=-1", "revision=²&after=99999999999"]
)
def test_transcript_fragment_ignores_nonsense(
    alice: User, recording: Recording, client_of: ClientOf, query: str
) -> None:
    response = client_of(alice).get(address(recording, f"transcript/?{query}"))
    assert response.status_code == 200
    assert b"Good morning." in response.content


# Acts ---------------------------------------------------------------------------------------------


def test_rename(alice: User, recording: Recording, client_of: ClientOf) -> None:
    response = client_of(alice).post(
        address(recording, "rename/"), {"title": "月例会 <1>"}, follow=True
    )
    recording.refresh_from_db()
    assert recording.title == "月例会 <1>"
    assert "The new title is saved." in response.content.decode()


@pytest.mark.parametrize("title", ["", "   ", "\u200b", "x" * 301])
def test_bad_title_is_refused_with_a_sentence(
    alice: User, recording: Recording, client_of: ClientOf, title: str
) -> None:
    response = client_of(alice).post(address(recording, "rename/"), {"title": title})
    assert response.status_code == 400
    assert "title" in response.content.decode()
    recording.refresh_from_db()
    assert recording.title == "Weekly"


def test_audience(alice: User, bob: User, recording: Recording, client_of: ClientOf) -> None:
    client, reader = client_of(alice), client_of(bob)
    assert (
        client.post(address(recording, "share/audience/"), {"audience": "everybody"}).status_code
        == 302
    )
    assert reader.get(address(recording)).status_code == 200
    assert (
        client.post(address(recording, "share/audience/"), {"audience": "owner"}).status_code == 302
    )
    assert reader.get(address(recording)).status_code == 404
    assert client.post(address(recording, "share/audience/"), {"audience": "?"}).status_code == 400


def test_cancel_stops_a_waiting_job(alice: User, recording: Recording, client_of: ClientOf) -> None:
    job = Job.objects.create(recording=recording)
    assert client_of(alice).post(address(recording, "cancel/")).status_code == 302
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


def test_cancel_without_a_job_is_harmless(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    assert client_of(alice).post(address(recording, "cancel/")).status_code == 302


@pytest.mark.parametrize(
    ("data", "language"), [({}, "de"), ({"language": "zh"}, "zh"), ({"language": ""}, "")]
)
def test_retry_queues_a_job(
    alice: User,
    recording: Recording,
    client_of: ClientOf,
    data: dict[str, str],
    language: str,
) -> None:
    Recording.objects.update(state=RecordingState.ATTENTION, requested_language="de")
    assert client_of(alice).post(address(recording, "retry/"), data).status_code == 302
    assert Job.objects.get(recording=recording).language == language
    recording.refresh_from_db()
    assert recording.state == RecordingState.QUEUED


@pytest.mark.parametrize("data", [{}, {"language": "zh"}])
def test_retry_beside_a_running_job_is_refused_whatever_is_asked(
    alice: User, recording: Recording, client_of: ClientOf, data: dict[str, str]
) -> None:
    """In another language it seemed to be done, and was not."""
    Job.objects.create(recording=recording, language="de")
    assert client_of(alice).post(address(recording, "retry/"), data).status_code == 409
    assert Job.objects.get().language == "de"


def test_retry_asks_for_what_the_dialog_says_and_offers_it_again(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    client = client_of(alice)
    asked = {"language": "mul", "speakers": "3", "chinese_script": "hans"}
    assert client.post(address(recording, "retry/"), asked).status_code == 302
    recording.refresh_from_db()
    assert (recording.mixes_languages, recording.chinese_script) == (True, "hans")
    assert (recording.finds_speakers, recording.speaker_count) == (True, 3)
    page = client.get(address(recording)).content.decode()
    for value in ("mul", "3", "hans"):
        assert f'<option value="{value}" selected>' in page
    assert "Several languages, mixed" in page


def test_retry_with_nonsense_for_speakers_is_refused(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    asked = {"language": "", "speakers": "0"}
    assert client_of(alice).post(address(recording, "retry/"), asked).status_code == 400
    assert not Job.objects.exists()


def test_retry_in_an_unknown_language_is_refused(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    response = client_of(alice).post(address(recording, "retry/"), {"language": "klingon"})
    assert response.status_code == 400
    assert not Job.objects.exists()


def test_delete_names_the_thing_and_moves_it_to_the_trash(
    alice: User, recording: Recording, client_of: ClientOf
) -> None:
    client = client_of(alice)
    assert "Delete “Weekly”?" in client.get(address(recording)).content.decode()
    response = client.post(address(recording, "delete/"), follow=True)
    assert "“Weekly” is in the trash" in response.content.decode()
    assert Recording.objects.get().trashed_at is not None
    assert client.get(address(recording)).status_code == 404
