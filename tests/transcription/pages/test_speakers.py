"""Speakers get names by hand; the page and the downloads use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from asr_engine.tracks import ChannelMode, ChannelPlan
from tests.fakes.pages import make_recording, write_transcript
from transcription.models import Recording
from transcription.services.speakers import MAX_NAME_LENGTH, voices_of
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]

TEXTS = ("Good morning.", "Hello.", "Shall we begin?")
LABELS = ("1", "2", "1")


@pytest.fixture
def talk(alice: User) -> Recording:
    recording = make_recording(alice, "Weekly", *TEXTS, is_organisation_wide=True)
    return with_speakers(recording, *LABELS)


def with_speakers(recording: Recording, *labels: str) -> Recording:
    assert recording.current_revision is not None
    for segment, label in zip(
        recording.current_revision.segments.order_by("index"), labels, strict=True
    ):
        segment.speaker = label
        segment.save()
    return recording


def address(recording: Recording) -> str:
    return f"/recordings/{recording.id}/"


def name(client: Client, recording: Recording, **names: str) -> int:
    labels = [label.removeprefix("speaker_") for label in names]
    data = {"label": labels, "name": list(names.values())}
    return client.post(address(recording) + "speakers/", data).status_code


def test_owner_sees_each_speaker_once_and_how_long_it_speaks(
    talk: Recording, client_of: ClientOf
) -> None:
    page = client_of(talk.owner).get(address(talk)).content.decode()
    assert page.count('name="label"') == 2
    assert '<p class="paragraph-speaker speaker-1">Speaker 1</p>' in page
    assert '<p class="paragraph-speaker speaker-2">Speaker 2</p>' in page
    assert "0:09" in page  # two of 4.9 s


def test_name_is_read_on_the_page_and_in_downloads(talk: Recording, client_of: ClientOf) -> None:
    client = client_of(talk.owner)
    assert name(client, talk, speaker_1="  Dr. <Ada> ", speaker_2="") == 302
    page = client.get(address(talk)).content.decode()
    assert page.count(">Dr. &lt;Ada&gt;</p>") == 2
    assert ">Speaker 2</p>" in page
    text = b"".join(client.get(address(talk) + "export.txt")).decode()
    assert "Dr. <Ada>" in text


def test_two_labels_with_one_name_are_one_person(talk: Recording, client_of: ClientOf) -> None:
    client = client_of(talk.owner)
    name(client, talk, speaker_1="Ada", speaker_2="Ada")
    page = client.get(address(talk)).content.decode()
    assert page.count('class="paragraph"') == 1
    assert page.count('<p class="paragraph-speaker speaker-1">Ada</p>') == 1


def test_name_is_kept_when_the_recording_is_transcribed_again(
    talk: Recording, client_of: ClientOf
) -> None:
    client = client_of(talk.owner)
    name(client, talk, speaker_1="Ada")
    write_transcript(talk, *TEXTS, number=2)
    with_speakers(talk, *LABELS)
    assert client.get(address(talk)).content.decode().count(">Ada</p>") == 2


def test_names_are_kept_apart_where_labels_mean_other_voices(
    talk: Recording, client_of: ClientOf
) -> None:
    """Another track, or speakers told apart in another way: and back."""
    client = client_of(talk.owner)
    talk.revisions.update(voices="0:count")
    name(client, talk, speaker_1="Katie")
    export = "/api/v1/recordings/{}/revisions/{}/transcript.json"
    for number, (voices, katies) in enumerate((("1:count", 0), ("0:2", 0), ("0:count", 2)), 2):
        write_transcript(talk, *TEXTS, number=number)
        with_speakers(talk, *LABELS)
        talk.revisions.filter(number=number).update(voices=voices)
        assert client.get(address(talk)).content.decode().count(">Katie</p>") == katies
        assert client.get(address(talk) + "export.txt").getvalue().count(b"Katie") == katies
        if not katies:
            name(client, talk, speaker_1="Dieter")
        assert client.get(export.format(talk.id, 1)).content.count(b'"Katie"') == 2
    assert set(talk.speaker_names.values_list("voices", "name")) == {
        ("0:count", "Katie"),
        ("1:count", "Dieter"),
        ("0:2", "Dieter"),
    }


@pytest.mark.parametrize(
    ("plan", "asked", "voices"),
    [
        (ChannelPlan(1), {"finds_speakers": True}, "1:count"),
        (ChannelPlan(1), {"finds_speakers": True, "speaker_count": 3}, "1:3"),
        (ChannelPlan(), {"finds_speakers": True}, ":count"),
        (ChannelPlan(0, ChannelMode.EACH), {"finds_speakers": True}, "0:each"),
        (ChannelPlan(0), {}, ""),
    ],
    ids=["counted", "numbered", "one-track", "channels", "not-told-apart"],
)
def test_labels_mean_the_same_in_one_track_told_apart_in_one_way(
    plan: ChannelPlan, asked: dict[str, Any], voices: str
) -> None:
    assert voices_of(plan, Recording(**asked)) == voices


def test_an_empty_name_takes_it_away(talk: Recording, client_of: ClientOf) -> None:
    client = client_of(talk.owner)
    name(client, talk, speaker_1="Ada")
    name(client, talk, speaker_1=" ")
    assert not talk.speaker_names.exists()


@pytest.mark.parametrize(("label", "called"), [("1", "x" * (MAX_NAME_LENGTH + 1)), ("7", "Nobody")])
def test_a_name_that_cannot_be_changes_nothing(
    talk: Recording, client_of: ClientOf, label: str, called: str
) -> None:
    response = client_of(talk.owner).post(
        address(talk) + "speakers/", {"label": ["2", label], "name": ["Bob", called]}
    )
    assert response.status_code == 400
    assert not talk.speaker_names.exists()


def test_reader_sees_names_and_cannot_change_them(
    talk: Recording, bob: User, client_of: ClientOf
) -> None:
    name(client_of(talk.owner), talk, speaker_1="Ada")
    page = client_of(bob).get(address(talk)).content.decode()
    assert ">Ada</p>" in page
    assert 'name="label"' not in page
    assert name(client_of(bob), talk, speaker_1="Eve") == 404
    assert name(client_of(None), talk, speaker_1="Eve") == 302
    assert list(talk.speaker_names.values_list("name", flat=True)) == ["Ada"]


def test_a_transcript_without_speakers_offers_no_names(alice: User, client_of: ClientOf) -> None:
    plain = make_recording(alice, "Weekly", "Hello.")
    page = client_of(alice).get(address(plain)).content.decode()
    assert "paragraph-speaker" not in page
    assert "Save names" not in page
