"""Closed utterances heard again by the batch model: soon, once, and never at a caption's cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import structlog
from redis import Redis

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.scripted import (
    ScriptedBatchModel,
    ScriptedDetector,
    encode_blocks,
    script_text,
)
from asr_engine.batch.two_pass import TwoPassOptions
from asr_engine.config import EngineSettings
from asr_engine.events import EndpointReason
from asr_engine.ports import Candidate, Window
from asr_engine.protocol import (
    EngineEvent,
    EngineEventKind,
    ViewerEvent,
    captions_channel,
    decode_viewer_event,
    session_key,
)
from asr_engine.results import Segment, Word
from tests.fakes.audio import wav_bytes
from tests.fakes.live import make_session, put_on_disk
from tests.fakes.recordings import make_job
from transcription.models import GlossaryTerm, LiveSession, LiveUtterance
from transcription.runners import batch_job, refine_live
from transcription.runners.pacing import LivePace
from transcription.runners.refine_live import LiveRefiner, better_words, window_of
from transcription.runners.slices import Models
from transcription.services import live_refinement, live_sessions
from transcription.services.live_refinement import ASKED_KEY, MAX_ATTEMPTS
from webapp.accounts.models import User
from webapp.config import site_settings

pytestmark = pytest.mark.django_db(transaction=True)

BLOCKS: list[int | None] = [None] * 5 + list(range(10)) + [None] * 12 + list(range(10, 20))
"""Two utterances: 0.5 to 1.5 s and 2.7 to 3.7 s."""
SPANS_MS = ((500, 1500), (2700, 3700))


@pytest.fixture
def broker() -> Iterator[Redis]:
    with Redis.from_url(site_settings().broker_url) as client:
        client.flushdb()
        yield client


@pytest.fixture
def session(alice: User, broker: Redis) -> LiveSession:
    """Live, with the audio of BLOCKS on disk."""
    session = live_sessions.start_live_session(session=make_session(alice))
    put_on_disk(session, encode_blocks(BLOCKS))
    return session


def close_utterance(
    session: LiveSession, number: int, text: str = "what the live pass heard of it", **fields: Any
) -> LiveUtterance:
    start_ms, end_ms = SPANS_MS[number % 2]
    event = EngineEvent(
        EngineEventKind.FINAL,
        str(session.id),
        epoch=1,
        utterance=number,
        **{"start_ms": start_ms, "end_ms": end_ms, "reason": EndpointReason.SILENCE, **fields},
        text=text,
    )
    stored = live_sessions.record_final(event=event)
    assert stored is not None
    return stored


def scripted() -> Models:
    return Models(model=ScriptedBatchModel(), finder=ScriptedDetector())


def refiner(worker: str = "jobs@one", load: Callable[[], Models] = scripted) -> LiveRefiner:
    return LiveRefiner(worker=worker, load=load)


def take_turn(worker: str = "jobs@one", load: Callable[[], Models] = scripted) -> None:
    refiner(worker, load).take_turn(must_stop=lambda: False)


def shown(session: LiveSession) -> list[str]:
    utterances = LiveUtterance.objects.filter(session=session).order_by("utterance")
    return [utterance.shown_text for utterance in utterances]


FIRST, SECOND = script_text(range(10)), script_text(range(10, 20))


def test_each_closed_utterance_gets_its_own_words_and_no_neighbour_s(session: LiveSession) -> None:
    close_utterance(session, 0)
    close_utterance(session, 1)
    take_turn()
    assert shown(session) == [FIRST, SECOND]
    stored = LiveUtterance.objects.get(session=session, utterance=1)
    words = [Word.from_json(word) for word in stored.refined_words]
    assert (words[0].text, words[0].start_ms, words[-1].end_ms) == ("w10", 2700, 3700)


def test_the_organisation_s_names_are_expected(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[TwoPassOptions] = []

    def refine(model: object, windows: list[Window], options: TwoPassOptions) -> list[Any]:
        asked.append(options)
        return [[] for _ in windows]

    monkeypatch.setattr(refine_live, "refine_windows", refine)
    GlossaryTerm.objects.create(phrase="Helstone")
    close_utterance(session, 0)
    take_turn()
    (options,) = asked
    assert options.rescorer is not None
    heard = [Candidate("At Helsten.", -0.3, 0.0, 1.0)]
    assert options.rescorer.hotwords(heard, "en") == "Helstone"


def test_readers_are_told_of_what_is_stored(session: LiveSession, broker: Redis) -> None:
    pubsub = broker.pubsub()
    pubsub.subscribe(captions_channel(str(session.id)))
    pubsub.get_message(timeout=30)
    close_utterance(session, 0)
    take_turn()
    message: Any = pubsub.get_message(timeout=30)
    event: ViewerEvent = decode_viewer_event(message["data"])
    assert (event.type, event.utterance, event.text) == ("refined", 0, FIRST)
    assert event.seq == LiveSession.objects.get(id=session.id).last_seq
    pubsub.close()


def test_nobody_is_told_where_the_text_is_the_same(session: LiveSession, broker: Redis) -> None:
    close_utterance(session, 0, FIRST)
    take_turn()
    assert not live_refinement.has_due()
    assert LiveSession.objects.get(id=session.id).last_seq == 1


def test_what_is_not_on_disk_waits(session: LiveSession, broker: Redis) -> None:
    utterance = close_utterance(session, 1)
    broker.hset(session_key(str(session.id)), "acknowledged_sample", SAMPLE_RATE)
    take_turn()
    utterance.refresh_from_db()
    assert (utterance.refined_at, utterance.refine_attempts) == (None, 0)
    put_on_disk(session, encode_blocks(BLOCKS))
    take_turn()
    assert shown(session) == [SECOND]


def test_a_session_that_has_just_become_a_recording_is_left(session: LiveSession) -> None:
    close_utterance(session, 0, "live")
    session.pcm_path.unlink()
    take_turn()
    assert shown(session) == ["live"]


def late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LivePace, "is_live_late", lambda self: True)


def choose(monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    site = site_settings().model_copy(update={"live_refine": choice})
    monkeypatch.setattr(refine_live.settings, "SITE", site)


def test_captions_that_are_late_come_first(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_utterance(session, 0, "live")
    with monkeypatch.context() as patch:
        late(patch)
        take_turn()
        assert shown(session) == ["live"]
    take_turn()
    assert shown(session) == [FIRST]


def test_switched_on_it_only_waits_for_late_captions(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []
    choose(monkeypatch, "on")
    late(monkeypatch)
    monkeypatch.setattr(LivePace, "wait_for_live", lambda self, stop: waits.append(stop))
    close_utterance(session, 0)
    take_turn()
    assert shown(session) == [FIRST]
    assert waits


def test_switched_off_it_loads_no_model(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(monkeypatch, "off")
    close_utterance(session, 0, "live")
    take_turn(load=lambda: pytest.fail("a model was loaded"))
    assert shown(session) == ["live"]


def test_a_worker_that_looks_may_be_woken_again(session: LiveSession, broker: Redis) -> None:
    broker.set(ASKED_KEY, "1")
    take_turn()
    assert not broker.exists(ASKED_KEY)


def test_without_anything_to_hear_no_model_is_loaded(session: LiveSession) -> None:
    take_turn(load=lambda: pytest.fail("a model was loaded"))
    assert not live_refinement.has_due()


class KilledError(BaseException):
    """What comes of a worker in the middle of its work."""


def test_what_a_killed_worker_was_hearing_is_heard_again_and_stored_once(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the worker of the same name at once, while another one leaves it alone."""
    utterance = close_utterance(session, 0)
    with monkeypatch.context() as patch:
        patch.setattr(Redis, "delete", lambda *_: None)  # the dead clear nothing up
        patch.setattr(live_sessions, "record_refined", _killed)
        with pytest.raises(KilledError):
            take_turn("jobs@one")
    take_turn("jobs@two")
    utterance.refresh_from_db()
    assert utterance.refined_at is None
    take_turn("jobs@one")
    take_turn("jobs@one")
    utterance.refresh_from_db()
    assert (utterance.shown_text, utterance.refine_attempts) == (FIRST, 2)
    assert LiveSession.objects.get(id=session.id).last_seq == 2


def _killed(**_: Any) -> None:
    raise KilledError


class BrokenModel(ScriptedBatchModel):
    def encode(self, windows: Any, **_: Any) -> Any:
        raise RuntimeError("what they said in the meeting")


def test_a_model_that_fails_is_not_tried_for_ever_and_its_words_are_not_logged(
    session: LiveSession,
) -> None:
    utterance = close_utterance(session, 0, "live")
    with structlog.testing.capture_logs() as lines:
        for _ in range(MAX_ATTEMPTS):
            take_turn(load=lambda: replace(scripted(), model=BrokenModel()))
    assert not live_refinement.has_due()
    assert [line["event"] for line in lines] == ["live_refine_failed"] * MAX_ATTEMPTS
    assert "meeting" not in str(lines)
    utterance.refresh_from_db()
    assert utterance.shown_text == "live"


def test_a_turn_ends_when_the_worker_must(session: LiveSession) -> None:
    close_utterance(session, 0, "live")
    refiner().take_turn(must_stop=lambda: True)
    assert shown(session) == ["live"]


def test_a_turn_is_over_when_its_time_is(session: LiveSession) -> None:
    """Of a backlog the newest lines are heard, and others get their turn."""
    for number in range(6):
        close_utterance(session, number, start_ms=500, end_ms=1500)
    refiner().take_turn(must_stop=lambda: False, turn_s=0)
    heard = LiveUtterance.objects.exclude(refined_at=None).order_by("utterance")
    assert [utterance.utterance for utterance in heard] == [2, 3, 4, 5]  # the model's batch


def test_a_long_job_does_not_keep_a_live_utterance_waiting(
    session: LiveSession, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is heard between two of the job's batches."""
    settings = EngineSettings(batch_backend="scripted")
    monkeypatch.setattr(batch_job, "engine_settings", lambda: settings)
    monkeypatch.setattr(refine_live, "LOOK_EVERY_S", 0.0)
    batch_job.loaded_models.cache_clear()
    talk: list[int | None] = [number if number % 9 else None for number in range(1500)]
    job = make_job(bob, content=wav_bytes(encode_blocks(talk)), duration_ms=150_000)
    heard: list[int] = []
    encode = ScriptedBatchModel.encode

    def noted(self: ScriptedBatchModel, windows: Any, **how: Any) -> Any:
        if not heard:
            close_utterance(session, 0)
        heard.append(len(windows[0].samples))
        return encode(self, windows, **how)

    monkeypatch.setattr(ScriptedBatchModel, "encode", noted)
    assert batch_job.run_next_slice("jobs@one")
    assert shown(session) == [FIRST]
    assert heard.index(min(heard)) < len(heard) - 1  # the job went on afterwards
    job.refresh_from_db()
    assert job.state == "done"


# Its audio ----------------------------------------------------------------------------------------


def window_ms(utterance: LiveUtterance, on_disk_ms: int = 10_000) -> tuple[int, int] | None:
    window = window_of(utterance, on_disk_ms * 16)
    return None if window is None else (window.start_sample // 16, window.end_sample // 16)


def test_a_little_around_an_utterance_is_heard_but_no_neighbour(
    session: LiveSession,
) -> None:
    put_on_disk(session, encode_blocks([None] * 100))
    first = close_utterance(session, 0, start_ms=200, end_ms=2600)
    assert window_ms(first) == (0, 3000)
    assert window_ms(first, on_disk_ms=2700) == (0, 2700)
    second = close_utterance(session, 1, start_ms=2700, end_ms=5000)
    assert window_ms(first) == (0, 2700)
    assert window_ms(second) == (2600, 5400)


def test_an_utterance_that_was_cut_while_speech_went_on_ends_there(session: LiveSession) -> None:
    put_on_disk(session, encode_blocks([None] * 100))
    utterance = close_utterance(session, 0, end_ms=4000, reason=EndpointReason.LENGTH)
    assert window_ms(utterance) == (100, 4000)


def test_a_window_is_never_longer_than_the_model_takes(session: LiveSession, broker: Redis) -> None:
    put_on_disk(session, encode_blocks([None] * 400))
    whole = close_utterance(session, 0, start_ms=1000, end_ms=30_800)
    assert window_ms(whole, on_disk_ms=40_000) == (900, 30_900)
    beyond = close_utterance(session, 1, start_ms=1000, end_ms=32_000)
    assert window_ms(beyond, on_disk_ms=40_000) is None


# What is better -----------------------------------------------------------------------------------


def segment(text: str, **fields: Any) -> Segment:
    words = tuple(Word(part, 400, 900) for part in text.split())
    return Segment(400, 900, text, words, **fields)


def test_the_live_words_stand_where_the_second_pass_knows_less() -> None:
    utterance = LiveUtterance(text="five words that were heard", start_ms=500, end_ms=1500)
    assert better_words(utterance, []) == []
    assert better_words(utterance, [segment("five words")]) == []
    assert better_words(utterance, [segment(utterance.text)]) == []
    assert better_words(utterance, [segment("", mark="unclear")]) == []
    assert better_words(utterance, [segment("Five words I heard. Five words I heard.")]) == []


def test_punctuation_alone_changes_no_line_unless_there_was_none() -> None:
    marked = LiveUtterance(text="Well, yes.", start_ms=500, end_ms=1500)
    assert better_words(marked, [segment("well yes!")]) == []
    bare = LiveUtterance(text="well yes", start_ms=500, end_ms=1500)
    assert [word.text for word in better_words(bare, [segment("Well, yes.")])] == ["Well,", "yes."]
    assert better_words(bare, [segment("well yes")]) == []


def test_refined_words_lie_within_their_utterance() -> None:
    utterance = LiveUtterance(text="tow words", start_ms=500, end_ms=800)
    words = better_words(utterance, [segment("two words")])
    assert [(word.text, word.start_ms, word.end_ms) for word in words] == [
        ("two", 500, 800),
        ("words", 500, 800),
    ]
