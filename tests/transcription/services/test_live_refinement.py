"""The second pass over live sessions: whose turn it is, stored once, and shown to everybody."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from asr_engine.results import Word
from tests.fakes.live import final, make_session
from transcription.models import LiveSession, LiveState, LiveUtterance, Recording, RecordingSource
from transcription.services import live_refinement, live_sessions, transcripts
from transcription.services.caption_text import write_caption_text
from transcription.services.live_refinement import MAX_ATTEMPTS, REFINED_WITHIN
from transcription.services.live_sessions import StoredAudio
from webapp.accounts.models import User

pytestmark = pytest.mark.django_db

WORDS = [Word("Better.", 0, 700, 0.9).as_json()]


@pytest.fixture
def session(alice: User) -> LiveSession:
    return live_sessions.start_live_session(session=make_session(alice))


def store(session: LiveSession, *texts: str) -> list[LiveUtterance]:
    stored = []
    for number, text in enumerate(texts):
        utterance = live_sessions.record_final(event=final(session, number, text))
        assert utterance is not None
        stored.append(utterance)
    return stored


def refine(utterance: LiveUtterance, text: str = "Better.") -> LiveUtterance | None:
    return live_sessions.record_refined(utterance_id=utterance.id, text=text, words=WORDS)


def last_seq(session: LiveSession) -> int:
    return LiveSession.objects.values_list("last_seq", flat=True).get(id=session.id)


def test_refined_text_is_stored_once_as_a_change_of_its_own(session: LiveSession) -> None:
    first, _ = store(session, "w0", "w1")
    stored = refine(first)
    assert stored is not None
    assert (stored.seq, stored.text, stored.shown_text) == (3, "w0", "Better.")
    assert refine(first, "Other.") is None
    assert LiveUtterance.objects.get(id=first.id).shown_text == "Better."
    assert last_seq(session) == 3  # no number is left out


def test_readers_get_the_refined_text_as_such(session: LiveSession) -> None:
    (utterance,) = store(session, "w0")
    assert live_sessions.final_event(utterance).type == "final"
    stored = refine(utterance)
    assert stored is not None
    event = live_sessions.final_event(stored)
    assert (event.type, event.seq, event.utterance) == ("refined", 2, 0)
    assert (event.text, event.words) == ("Better.", tuple(WORDS))


def test_what_was_heard_no_better_is_no_change_and_not_tried_again(session: LiveSession) -> None:
    (utterance,) = store(session, "w0")
    assert refine(utterance, "") is None
    assert last_seq(session) == 1
    assert LiveUtterance.objects.get(id=utterance.id).shown_text == "w0"
    assert not live_refinement.has_due()


def test_what_has_become_a_recording_is_not_changed_any_more(session: LiveSession) -> None:
    (utterance,) = store(session, "w0")
    live_sessions.move_live_session(session.id, LiveState.ENDING)
    live_sessions.move_live_session(session.id, LiveState.ENDED)
    assert refine(utterance) is None
    assert LiveUtterance.objects.get(id=utterance.id).refined_at is None
    assert last_seq(session) == 1


def test_a_deleted_session_takes_no_refined_text(session: LiveSession) -> None:
    (utterance,) = store(session, "w0")
    session.delete()
    assert refine(utterance) is None
    assert not LiveUtterance.objects.exists()


def test_each_session_s_newest_utterance_comes_first(session: LiveSession, bob: User) -> None:
    other = live_sessions.start_live_session(session=make_session(bob))
    store(other, "b0")
    store(session, "a0", "a1", "a2")
    assert [utterance.text for utterance in live_refinement.due_utterances()] == [
        "a2",
        "b0",
        "a1",
        "a0",
    ]


def test_old_tried_and_ended_ones_do_not_wait(session: LiveSession, bob: User) -> None:
    old, tried, waiting = store(session, "old", "tried", "waiting")
    LiveUtterance.objects.filter(id=old.id).update(stored_at=timezone.now() - REFINED_WITHIN)
    for _ in range(MAX_ATTEMPTS):
        live_refinement.begin_attempts(utterances=[tried])
    over = live_sessions.start_live_session(session=make_session(bob))
    store(over, "over")
    LiveSession.objects.filter(id=over.id).update(state=LiveState.ENDED)
    assert [utterance.id for utterance in live_refinement.due_utterances()] == [waiting.id]


def test_surroundings_end_at_the_neighbours(session: LiveSession) -> None:
    first, middle, last = store(session, "w0", "w1", "w2")
    around = live_refinement.surroundings_of(middle)
    assert (around.before_ms, around.after_ms) == (first.end_ms, last.start_ms)
    assert live_refinement.surroundings_of(first).before_ms == 0
    assert live_refinement.surroundings_of(last).after_ms is None


def test_players_and_the_recording_get_the_refined_text(session: LiveSession) -> None:
    first, _ = store(session, "w0", "w1")
    refine(first)
    assert write_caption_text(session=session, extension="txt") == "Better.\nw1\n"
    assert "Better." in write_caption_text(session=session, extension="vtt")
    recording = Recording.objects.create(
        id=session.id,
        owner=session.owner,
        title=session.title,
        source=RecordingSource.LIVE,
        duration_ms=5000,
        recorded_at=timezone.now() - timedelta(minutes=1),
    )
    revision = transcripts.store_live_revision(recording=recording, session=session)
    segments = transcripts.segments_of(revision)
    assert [segment.text for segment in segments] == ["Better.", "w1"]
    assert segments[0].words == (Word("Better.", 0, 700, 0.9),)


AUDIO = StoredAudio(60_000, 1, "FLAC", "FLAC", "audio/flac", "source.bin")


@pytest.mark.parametrize(
    ("languages", "mixes"),
    [
        (["en", "zh", "en", "zh"], True),
        (["en"] * 50 + ["zh"] * 2, False),
        (["en", "en", "cy", "en"], False),
        (["en", "", "", ""], False),
        ([], False),
    ],
    ids=["two languages", "a few seconds of another", "one mistake", "unknown", "nothing said"],
)
def test_a_recording_is_heard_in_as_many_languages_as_its_captions(
    session: LiveSession, languages: list[str], mixes: bool
) -> None:
    for number, language in enumerate(languages):
        live_sessions.record_final(event=replace(final(session, number, "w0"), language=language))
    live_sessions.move_live_session(session.id, LiveState.ENDING)
    ended = live_sessions.finish_live_session(session_id=session.id, audio=AUDIO)
    assert ended is not None
    assert ended.recording is not None
    assert ended.recording.mixes_languages is mixes
