"""The engine service against real servers, with the scripted model in this process."""

from __future__ import annotations

import asyncio
import re
import time

import pytest
import structlog

from asr_engine import client
from asr_engine.audio import SAMPLE_RATE, FloatSamples, float_to_pcm16
from asr_engine.backends.scripted import (
    ScriptedDetector,
    ScriptedModel,
    encode_blocks,
    script,
    script_text,
)
from asr_engine.errors import (
    EngineError,
    NoEngineError,
    NoFreeSlotError,
    UnsupportedModeError,
)
from asr_engine.protocol import (
    ADMISSION_TIMEOUT_S,
    COMMAND_FIELD,
    SESSIONS_KEY,
    AudioEntry,
    AudioEntryKind,
    Command,
    EngineEventKind,
    Reply,
    ViewerEvent,
    audio_key,
    captions_channel,
    commands_key,
    decode_viewer_event,
    encode,
    reply_key,
    session_key,
    whole_key,
)
from asr_engine.streaming import Engine
from asr_engine.worker import hearing
from asr_engine.worker.service import EngineService, ModelThreadError
from tests.asr_engine.worker.conftest import Servers, StartService, eventually
from tests.fakes.engines import FailingModel

FINAL, GAP, ENDED, WAITING = (
    EngineEventKind.FINAL,
    EngineEventKind.GAP,
    EngineEventKind.ENDED,
    EngineEventKind.WAITING,
)


def real_time_engine(model: ScriptedModel | None = None) -> Engine:
    return Engine(model or ScriptedModel(), ScriptedDetector())


async def open_session(servers: Servers, session: str, mode_ms: int = 0) -> Reply:
    return await client.request_stream(
        servers.broker, session=session, language="en", mode_ms=mode_ms
    )


async def test_a_session_is_heard_from_open_to_end(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    reply = await open_session(servers, "s")
    assert (reply.is_admitted, reply.mode_ms, reply.packet_ms) == (True, 160, 160)
    blocks = script(30)
    await servers.speak("s", encode_blocks(blocks))
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    finals = await servers.finals("s")
    assert [final.utterance for final in finals] == list(range(4))
    assert await servers.text("s") == script_text(blocks)
    assert (await servers.events("s"))[-1].end_sample == servers.sent_samples["s"]
    state = await servers.broker.hgetall(session_key("s"))
    assert state[b"owner"] == b""
    assert state[b"next_utterance"] == b"4"
    assert int(state[b"resume_sample"]) == servers.sent_samples["s"]
    assert await servers.broker.smembers(SESSIONS_KEY) == set()


async def test_fifty_simultaneous_opens_at_twenty_slots_give_exactly_twenty(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine(ScriptedModel(slots=20)))
    answers = await asyncio.gather(
        *(open_session(servers, f"s{index}") for index in range(50)), return_exceptions=True
    )
    assert sum(isinstance(answer, Reply) for answer in answers) == 20
    assert sum(isinstance(answer, NoFreeSlotError) for answer in answers) == 30
    assert await servers.broker.scard(SESSIONS_KEY) == 20


async def test_a_session_that_runs_is_answered_with_the_stream_it_has(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine(ScriptedModel(slots=1)))
    first = await open_session(servers, "s", mode_ms=560)
    again = await open_session(servers, "s")
    assert again == first
    assert again.epoch == 1


async def test_an_open_nobody_waits_for_any_more_takes_no_slot(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine(ScriptedModel(slots=1)))
    old = time.time() - 2 * ADMISSION_TIMEOUT_S
    for request, sent_at_s in (("stale", old), ("fresh", time.time())):
        command = Command("open", request, request, "en", sent_at_s=sent_at_s)
        await servers.broker.xadd(commands_key("engine-1"), {COMMAND_FIELD: encode(command)})
    assert await servers.broker.blpop([reply_key("fresh")], timeout=5)
    assert await servers.broker.exists(reply_key("stale")) == 0
    assert await servers.broker.smembers(SESSIONS_KEY) == {b"fresh"}


async def test_a_command_that_makes_no_sense_is_passed_over(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    for nonsense in ("{", "[]", '{"kind":"open","nonsense":1}'):
        await servers.broker.xadd(commands_key("engine-1"), {COMMAND_FIELD: nonsense})
    assert (await open_session(servers, "s")).is_admitted


async def test_an_audio_entry_that_makes_no_sense_is_passed_over(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    await open_session(servers, "s")
    await servers.audio.xadd("live:s:audio", {"k": "nonsense", "s": 0})
    await servers.audio.xadd("live:s:audio", {"k": "audio", "s": 0, "d": b"odd"})
    await servers.speak("s", encode_blocks([None, 1, 2, *[None] * 10]))
    await servers.wait_for("s", FINAL)
    assert await servers.text("s") == "w1 w2"


async def test_a_pause_makes_the_words_final_and_the_session_goes_on(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    await open_session(servers, "s")
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2, 3]))
    await servers.mark("s", AudioEntryKind.PAUSED)
    await servers.wait_for("s", FINAL)
    await servers.mark("s", AudioEntryKind.RESUMED)
    await servers.speak("s", encode_blocks([4, 5]))
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert await servers.text("s") == "w1 w2 w3 w4 w5"


async def test_an_engine_is_known_only_once_it_listens(
    servers: Servers, start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It throws away what was sent to its predecessor: a command of today must not be among it."""
    key = commands_key("engine-1")
    await servers.broker.xadd(key, {COMMAND_FIELD: encode(Command("drain"))})
    old_commands: list[int] = []
    say_status = EngineService._say_status

    async def watched(self: EngineService) -> None:
        old_commands.append(await servers.broker.xlen(key))
        await say_status(self)

    monkeypatch.setattr(EngineService, "_say_status", watched)
    await start_service(real_time_engine())
    await open_session(servers, "s")
    assert old_commands[0] == 0


async def test_an_idle_session_waits_and_comes_back_with_the_next_utterance(
    servers: Servers, start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words are final, its slot is free."""
    monkeypatch.setattr(hearing, "IDLE_S", 0.2)
    await start_service(real_time_engine(ScriptedModel(slots=1)))
    await open_session(servers, "s")
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2, 3]))
    await servers.wait_for("s", WAITING)
    assert await servers.text("s") == "w1 w2 w3"
    state = await servers.broker.hgetall(session_key("s"))
    assert state[b"owner"] == b""
    assert int(state[b"resume_sample"]) == servers.sent_samples["s"]
    assert await servers.broker.smembers(SESSIONS_KEY) == set()
    await open_session(servers, "other")
    await servers.wait_for("other", WAITING)
    servers.skip("s", 60 * SAMPLE_RATE)
    monkeypatch.setattr(hearing, "IDLE_S", 30)
    assert (await open_session(servers, "s")).epoch == 2
    await servers.speak("s", encode_blocks([None] * 5 + [4, 5]))
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert await servers.kinds("s") == [FINAL, WAITING, FINAL, ENDED]
    assert [(item.utterance, item.text) for item in await servers.finals("s")] == [
        (0, "w1 w2 w3"),
        (1, "w4 w5"),
    ]


async def test_an_engine_that_lost_its_session_publishes_nothing_more(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine(ScriptedModel(slots=1)))
    await open_session(servers, "s")
    await servers.broker.hset(session_key("s"), mapping={"owner": "other:1", "epoch": 9})
    await servers.broker.set("engine:other", "{}", ex=30)
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2, 3] + [None] * 10))

    async def is_dropped() -> bool:
        return await servers.broker.get("engine:engine-1") is not None and (
            b'"free_slots":1' in await servers.broker.get("engine:engine-1")
        )

    await eventually(is_dropped)
    assert await servers.events("s") == []
    assert await servers.broker.hget(session_key("s"), "owner") == b"other:1"


async def test_a_stream_that_the_model_failed_on_is_heard_again(
    servers: Servers, start_service: StartService
) -> None:
    model = FailingModel()
    await start_service(real_time_engine(model))
    await open_session(servers, "s")
    blocks = script(24)
    half = len(encode_blocks(blocks)) // 2
    await servers.speak("s", encode_blocks(blocks)[:half])
    await servers.wait_for("s", FINAL)
    model.broken = {"s/1"}
    await servers.speak("s", encode_blocks(blocks)[half:])

    async def has_failed() -> bool:
        return "s/1" not in model._slots

    await eventually(has_failed)
    model.broken = set()
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert await servers.text("s") == script_text(blocks)
    assert len({item.utterance for item in await servers.finals("s")}) == 3


async def test_audio_that_always_fails_is_skipped_as_a_gap(
    servers: Servers, start_service: StartService
) -> None:
    """One bad stretch costs itself, not the session."""
    model = FailingModel()
    await start_service(real_time_engine(model))
    await open_session(servers, "s")
    model.broken = {"s/1"}
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2, 3]))
    await servers.wait_for("s", GAP)
    model.broken = set()
    await servers.speak("s", encode_blocks([None] * 5 + [4, 5]))
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert await servers.text("s") == "w4 w5"


async def test_partials_are_told_while_an_utterance_is_open(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    listener = servers.broker.pubsub()
    await listener.subscribe(captions_channel("s"))
    await open_session(servers, "s")
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2, 3, 4]))
    heard: list[ViewerEvent] = []

    async def has_heard() -> bool:
        message = await listener.get_message(ignore_subscribe_messages=True, timeout=0.1)
        if message:
            heard.append(decode_viewer_event(message["data"]))
        return bool(heard)

    await eventually(has_heard)
    await listener.aclose()
    assert heard[0].type == "partial"
    assert heard[0].session == "s"
    assert heard[0].utterance == 0
    assert (heard[0].text or "").startswith("w1")


async def test_a_mode_changes_by_command(servers: Servers, start_service: StartService) -> None:
    await start_service(real_time_engine())
    await open_session(servers, "s", mode_ms=1120)
    reply = await client.set_stream_mode(servers.broker, session="s", mode_ms=80)
    assert reply is not None
    assert (reply.mode_ms, reply.packet_ms, reply.modes_ms) == (80, 80, (80, 160, 560, 1120))
    assert await open_session(servers, "s") == reply
    assert await servers.broker.hget(session_key("s"), "mode_ms") == b"80"


async def test_the_last_of_many_mode_changes_holds(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    await open_session(servers, "s")
    wanted = [80, 1120, 160, 560]
    replies = await asyncio.gather(
        *(client.set_stream_mode(servers.broker, session="s", mode_ms=mode) for mode in wanted)
    )
    in_the_end = (await open_session(servers, "s")).mode_ms
    assert {reply.mode_ms for reply in replies if reply} == set(wanted)
    assert await servers.broker.hget(session_key("s"), "mode_ms") == str(in_the_end).encode()


async def test_a_mode_that_the_model_lacks_changes_nothing(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    await open_session(servers, "s", mode_ms=560)
    with pytest.raises(UnsupportedModeError):
        await client.set_stream_mode(servers.broker, session="s", mode_ms=77)
    assert (await open_session(servers, "s")).mode_ms == 560
    assert await servers.broker.hget(session_key("s"), "mode_ms") == b"560"


async def test_a_mode_of_a_session_that_was_taken_by_another_is_not_changed(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    await open_session(servers, "s", mode_ms=560)
    await servers.broker.hset(session_key("s"), "epoch", 7)
    with pytest.raises(NoEngineError):
        await client.set_stream_mode(servers.broker, session="s", mode_ms=80)
    assert await servers.broker.hget(session_key("s"), "mode_ms") == b"560"


async def test_a_changed_mode_is_kept_by_a_stream_that_is_opened_again(
    servers: Servers, start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = FailingModel()
    opened_ms: list[int] = []
    open_model = model.open

    def open_and_note(stream: str, *, language: str | None, mode_ms: int) -> None:
        opened_ms.append(mode_ms)
        open_model(stream, language=language, mode_ms=mode_ms)

    monkeypatch.setattr(model, "open", open_and_note)
    await start_service(real_time_engine(model))
    await open_session(servers, "s")
    await client.set_stream_mode(servers.broker, session="s", mode_ms=560)
    model.broken = {"s/1"}
    await servers.speak("s", encode_blocks(script(8)))

    async def was_opened_again() -> bool:
        return len(opened_ms) == 2

    await eventually(was_opened_again)
    assert opened_ms == [160, 560]


async def test_a_successor_begins_in_the_changed_mode(
    servers: Servers, start_service: StartService
) -> None:
    first = await start_service(real_time_engine(), "engine-1")
    await open_session(servers, "s")
    await client.set_stream_mode(servers.broker, session="s", mode_ms=560)
    await start_service(real_time_engine(), "engine-2")
    await first.stop()

    async def has_successor() -> bool:
        owner = await servers.broker.hget(session_key("s"), "owner")
        return bool(owner and owner.startswith(b"engine-2"))

    await eventually(has_successor)
    assert await servers.broker.hget(session_key("s"), "mode_ms") == b"560"
    assert (await open_session(servers, "s")).mode_ms == 560


async def test_a_language_changes_by_command_and_stays_with_a_successor(
    servers: Servers, start_service: StartService
) -> None:
    first = await start_service(real_time_engine(), "engine-1")
    await open_session(servers, "s")
    reply = await client.set_stream_language(servers.broker, session="s", language="de")
    assert reply is not None
    assert reply.is_admitted
    assert await servers.broker.hget(session_key("s"), "language") == b"de"
    await start_service(real_time_engine(), "engine-2")
    await first.stop()

    async def has_successor() -> bool:
        owner = await servers.broker.hget(session_key("s"), "owner")
        return bool(owner and owner.startswith(b"engine-2"))

    await eventually(has_successor)
    assert await servers.broker.hget(session_key("s"), "language") == b"de"


async def test_an_unknown_mode_becomes_the_default(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    assert (await open_session(servers, "s", mode_ms=77)).mode_ms == 160


async def test_a_draining_engine_refuses_and_keeps_what_it_has(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    await open_session(servers, "s")
    command = Command("drain", sent_at_s=time.time())
    await servers.broker.xadd(commands_key("engine-1"), {COMMAND_FIELD: encode(command)})

    async def is_draining() -> bool:
        return all(item.is_draining for item in await client.engine_statuses(servers.broker))

    await eventually(is_draining)
    with pytest.raises(EngineError):
        await open_session(servers, "t")
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2, 3]))
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert await servers.text("s") == "w1 w2 w3"


async def test_a_stopped_engine_leaves_its_sessions_to_another_at_once(
    servers: Servers, start_service: StartService
) -> None:
    first = await start_service(real_time_engine(), "engine-1")
    await open_session(servers, "s")
    blocks = script(24)
    audio = encode_blocks(blocks)
    await servers.speak("s", audio[: len(audio) // 2])
    await servers.wait_for("s", FINAL)
    await start_service(real_time_engine(), "engine-2")
    await first.stop()
    assert [item.engine for item in await client.engine_statuses(servers.broker)] == ["engine-2"]
    await servers.speak("s", audio[len(audio) // 2 :])
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert await servers.text("s") == script_text(blocks)
    assert await servers.broker.hget(session_key("s"), "epoch") == b"2"


async def test_a_successor_does_not_take_a_session_whose_engine_beats(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine(), "engine-1")
    reply = await open_session(servers, "s")
    await start_service(real_time_engine(), "engine-2")
    await servers.speak("s", encode_blocks(script(8)))
    await servers.wait_for("s", FINAL)
    assert [final.epoch for final in await servers.finals("s")] == [reply.epoch]


async def test_the_engine_goes_on_behind_lost_audio(
    servers: Servers, start_service: StartService
) -> None:
    """The audio server lost everything; the engine still has its state."""
    await start_service(real_time_engine())
    await open_session(servers, "s")
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2] + [None] * 10))
    await servers.wait_for("s", FINAL)
    await servers.audio.flushdb()
    servers.skip("s", 2 * SAMPLE_RATE)
    await servers.speak("s", encode_blocks([None] * 5 + [3, 4]))
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert await servers.text("s") == "w1 w2 w3 w4"


async def wait_until_heard(servers: Servers) -> None:
    """Until the engine has read all that was spoken into the session `s`, and partials come."""
    listener = servers.broker.pubsub()
    await listener.subscribe(captions_channel("s"))

    async def is_heard() -> bool:
        message = await listener.get_message(ignore_subscribe_messages=True, timeout=0.1)
        return message is not None and b"w1" in message["data"]

    await eventually(is_heard)
    await listener.aclose()


async def lose_audio_that_is_on_disk(servers: Servers, samples: FloatSamples) -> list[bytes]:
    """The audio server dies and what comes next follows the lost `samples`, which are returned in
    pieces, as a recorder has them."""
    await servers.audio.flushdb()
    servers.skip("s", len(samples))
    entry = AudioEntry(
        AudioEntryKind.AUDIO,
        servers.sent_samples["s"],
        float_to_pcm16(encode_blocks([9, 10, *[None] * 12])),
    )
    await servers.audio.xadd(audio_key("s"), entry.as_fields())
    servers.skip("s", len(entry.payload) // 2)
    pcm = float_to_pcm16(samples)
    return [pcm[:8000], pcm[8000:]]


async def test_audio_that_is_on_disk_alone_is_waited_for(
    servers: Servers, start_service: StartService
) -> None:
    """Also by a successor that has no state: what the recorder gives back is no gap."""
    await start_service(real_time_engine())
    await open_session(servers, "s")
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2, 3, 4]))
    await wait_until_heard(servers)
    resume = servers.sent_samples["s"]
    with structlog.testing.capture_logs() as logs:
        lost = await lose_audio_that_is_on_disk(servers, encode_blocks([5, 6, 7, 8]))

        async def is_doubted() -> bool:
            return any(entry["event"] == "audio_doubted" for entry in logs)

        await eventually(is_doubted)
    assert await servers.events("s") == []
    present = await servers.audio.xrange(audio_key("s"))
    pipe = servers.audio.pipeline()
    pipe.delete(audio_key("s"))
    for number, payload in enumerate(lost, start=1):
        entry = AudioEntry(AudioEntryKind.AUDIO, resume, payload)
        pipe.xadd(audio_key("s"), entry.as_fields(), id=f"1-{number}")
        resume = entry.end_sample
    for entry_id, fields in present:
        pipe.xadd(audio_key("s"), fields, id=entry_id)
    pipe.set(whole_key("s"), "1")
    await pipe.execute()
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert [final.text for final in await servers.finals("s")] == ["w1 w2 w3 w4 w5 w6 w7 w8 w9 w10"]


async def test_without_a_recorder_missing_audio_is_a_gap_in_the_end(
    servers: Servers, start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "GAP_PATIENCE_S", 0.3)
    await start_service(real_time_engine())
    await open_session(servers, "s")
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2, 3, 4]))
    await wait_until_heard(servers)
    await lose_audio_that_is_on_disk(servers, encode_blocks([5, 6, 7, 8]))
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert [final.text for final in await servers.finals("s")] == ["w1 w2 w3 w4", "w9 w10"]


async def test_a_pause_counts_once_when_the_stream_is_read_again(
    servers: Servers, start_service: StartService
) -> None:
    """A gap makes the engine read the stream from its start: the words since are one utterance."""
    await start_service(real_time_engine())
    await open_session(servers, "s")
    await servers.speak("s", encode_blocks([None] * 5 + [1, 2]))
    await servers.mark("s", AudioEntryKind.PAUSED)
    await servers.wait_for("s", FINAL)
    await servers.mark("s", AudioEntryKind.RESUMED)
    await servers.speak("s", encode_blocks([3, 4, *[None] * 12]))
    await servers.wait_for("s", FINAL, count=2)
    await servers.speak("s", encode_blocks([5, 6]))
    servers.skip("s", SAMPLE_RATE)
    await servers.speak("s", encode_blocks([7, 8]))
    await servers.mark("s", AudioEntryKind.END)
    await servers.wait_for("s", ENDED)
    assert [final.text for final in await servers.finals("s")] == [
        "w1 w2",
        "w3 w4",
        "w5 w6",
        "w7 w8",
    ]


async def test_a_dead_model_thread_ends_the_process_and_frees_its_sessions(
    servers: Servers, start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that cannot hear must not keep beating: its supervisor starts it again."""
    engine = real_time_engine()
    service = await start_service(engine)
    await open_session(servers, "s")

    def fail() -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(engine, "step", fail)
    await servers.speak("s", encode_blocks([None, 1]))
    with pytest.raises(ModelThreadError):
        await asyncio.shield(service.task)
    assert await servers.broker.hget(session_key("s"), "owner") == b""
    assert await servers.broker.smembers(SESSIONS_KEY) == {b"s"}


async def test_nothing_that_was_said_reaches_the_log(
    servers: Servers, start_service: StartService
) -> None:
    model = FailingModel()
    with structlog.testing.capture_logs() as logs:
        await start_service(real_time_engine(model))
        await open_session(servers, "session")
        await servers.speak("session", encode_blocks(script(8)))
        await servers.wait_for("session", FINAL)
        model.broken = {"session/1"}
        await servers.speak("session", encode_blocks(script(8)))

        async def has_failed() -> bool:
            return any(entry["event"] == "model_failed" for entry in logs)

        await eventually(has_failed)
    assert "stream_opened" in {entry["event"] for entry in logs}
    written = " ".join(str(value) for entry in logs for value in entry.values())
    assert not re.search(r"\bw\d", written)
    assert "a decoder's own words" not in written


async def test_many_sessions_run_side_by_side(
    servers: Servers, start_service: StartService
) -> None:
    await start_service(real_time_engine())
    blocks = {f"s{index}": script(16, first=1000 * index) for index in range(12)}
    await asyncio.gather(*(open_session(servers, session) for session in blocks))
    for session, said in blocks.items():
        await servers.speak(session, encode_blocks(said))
        await servers.mark(session, AudioEntryKind.END)
    for session, said in blocks.items():
        await servers.wait_for(session, ENDED)
        assert await servers.text(session) == script_text(said)
