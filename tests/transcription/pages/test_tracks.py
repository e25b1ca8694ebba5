"""The page says which track is transcribed, and lets the owner choose another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.test import Client

from asr_engine.tracks import TrackSurvey
from tests.fakes.pages import make_recording
from transcription.models import Job, Recording
from transcription.pages.tracks import track_notes
from webapp.accounts.models import User

ClientOf = Callable[[User | None], Client]

FIRST = TrackSurvey(
    index=0,
    channels=1,
    heard_ms=60_000,
    speech_ms=(9_000,),
    level_db=(-20,),
    is_default=True,
    language="eng",
)
SECOND = replace(FIRST, index=1, is_default=False, title="<Interpreter>", language="und")
STEREO = replace(FIRST, channels=2, speech_ms=(9_000, 9_000), level_db=(-20, -20))


def recording_with(owner: User, *tracks: TrackSurvey, chosen: int | None = None) -> Recording:
    return make_recording(
        owner, "Weekly", "Hello.", tracks=[track.as_json() for track in tracks], track=chosen
    )


def sentences(recording: Recording) -> str:
    notes = track_notes(recording)
    return "" if notes is None else " ".join(notes.sentences)


def test_a_plain_recording_says_nothing_of_tracks(alice: User, client_of: ClientOf) -> None:
    assert track_notes(recording_with(alice)) is None
    plain = recording_with(alice, STEREO)
    assert track_notes(plain) is None
    assert "Audio tracks" not in client_of(alice).get(f"/recordings/{plain.id}/").content.decode()


@pytest.mark.parametrize(
    ("tracks", "chosen", "said"),
    [
        ((FIRST, SECOND), None, "2 audio tracks. Track 1 is transcribed."),
        ((FIRST, SECOND), 1, "Track 2 is transcribed."),
        (
            (replace(FIRST, speech_ms=(0,)), SECOND),
            None,
            "Track 1 has no speech, so track 2 is transcribed.",
        ),
        (
            (replace(FIRST, speech_ms=(0,), level_db=(-120,)), SECOND),
            None,
            "Track 1 is silent, so track 2 is transcribed.",
        ),
        ((replace(STEREO, are_channels_different=True),), None, "as Left and Right."),
        (
            (replace(STEREO, speech_ms=(9_000, 0), is_heard_whole=True),),
            None,
            "Nobody speaks in the right channel, so only the left one is heard.",
        ),
        (
            (replace(STEREO, speech_ms=(0, 9_000), is_heard_whole=True),),
            None,
            "Nobody speaks in the left channel, so only the right one is heard.",
        ),
        (
            (replace(STEREO, speech_ms=(9_000, 0)),),
            None,
            "Hardly anybody was heard in the right channel where it was listened to.",
        ),
        (
            (replace(STEREO, speech_ms=(60, 9_000)),),
            None,
            "Hardly anybody was heard in the left channel where it was listened to.",
        ),
    ],
)
def test_readers_are_told_what_is_transcribed(
    alice: User, tracks: tuple[TrackSurvey, ...], chosen: int | None, said: str
) -> None:
    assert said in sentences(recording_with(alice, *tracks, chosen=chosen))


@pytest.mark.parametrize("speech_ms", [(9_000, 0), (0, 9_000)], ids=["right", "left"])
def test_voices_that_were_not_heard_are_not_claimed(
    alice: User, speech_ms: tuple[int, int]
) -> None:
    said = sentences(recording_with(alice, replace(STEREO, speech_ms=speech_ms)))
    assert said.endswith("each channel is written down on its own, as Left and Right.")
    assert "different voices" not in said
    assert "Nobody" not in said


def test_the_owner_chooses_another_track(alice: User, client_of: ClientOf) -> None:
    recording = recording_with(alice, FIRST, SECOND)
    page = client_of(alice).get(f"/recordings/{recording.id}/").content.decode()
    assert '<option value="0" selected>Track 1 · eng</option>' in page
    assert '<option value="1">Track 2 · &lt;Interpreter&gt;</option>' in page
    answer = client_of(alice).post(f"/recordings/{recording.id}/track/", {"track": "1"})
    assert answer.status_code == 302
    recording.refresh_from_db()
    assert (recording.track, Job.objects.get().track) == (None, 1)
    page = client_of(alice).get(f"/recordings/{recording.id}/").content.decode()
    assert "Track 1 is transcribed." in page
    assert "Track 2 comes next" in page
    assert "when this transcription has ended" in page
    assert "<option value=" not in page.partition('id="tracks"')[2].partition("</section>")[0]


def test_the_fragment_follows_the_state(alice: User, client_of: ClientOf) -> None:
    recording = recording_with(alice, FIRST, SECOND)
    fragment = client_of(alice).get(f"/recordings/{recording.id}/status/").content.decode()
    assert 'id="tracks" hx-swap-oob="true"' in fragment


def test_a_colleague_reads_but_does_not_choose(
    alice: User, bob: User, charlie: User, client_of: ClientOf
) -> None:
    recording = recording_with(alice, FIRST, SECOND)
    recording.is_organisation_wide = True
    recording.save()
    page = client_of(bob).get(f"/recordings/{recording.id}/").content.decode()
    assert "Track 1 is transcribed." in page
    assert "Transcribe this track" not in page
    address = f"/recordings/{recording.id}/track/"
    assert client_of(bob).post(address, {"track": "1"}).status_code == 404
    assert client_of(None).post(address, {"track": "1"}).status_code == 302
    recording.is_organisation_wide = False
    recording.save()
    assert client_of(charlie).post(address, {"track": "1"}).status_code == 404
    assert not Job.objects.exists()


@pytest.mark.parametrize("track", ["", "2", "-1", "one", "1" * 9, "²"])
def test_a_track_that_is_not_there_is_refused(alice: User, client_of: ClientOf, track: str) -> None:
    recording = recording_with(alice, FIRST, SECOND)
    answer = client_of(alice).post(f"/recordings/{recording.id}/track/", {"track": track})
    assert answer.status_code == 400
    assert not Job.objects.exists()


def test_another_is_refused_while_one_is_transcribed(alice: User, client_of: ClientOf) -> None:
    recording = recording_with(alice, FIRST, SECOND)
    address = f"/recordings/{recording.id}/track/"
    client_of(alice).post(address, {"track": "1"})
    assert client_of(alice).post(address, {"track": "0"}).status_code == 409
