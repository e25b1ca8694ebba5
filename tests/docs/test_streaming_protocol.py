"""What the streaming socket's documents say is what the code does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from asr_engine.protocol import Reply, ViewerEvent, members_of
from tests.docs.settings_reference import ROOT
from tests.fakes.asyncapi import description, matching, messages_of, validator
from tests.fakes.live import hello
from transcription.realtime import wire
from transcription.realtime.encodings import RATES
from transcription.realtime.wire import CloseCode

PAGE = (ROOT / "docs" / "streaming-protocol.md").read_text()
SESSION = "6f1c2b1e-52c0-4f1c-9d55-5a1f0a7f3f10"
WORDS = ({"text": "Good", "start_ms": 0, "end_ms": 300, "confidence": 0.9},)
ADMITTED = Reply(True, "one", 1, 160, 160, modes_ms=(160, 560))
REFUSAL = wire.Refusal(CloseCode.TRY_LATER, "no_free_slot", "All places are taken.")
FINAL = ViewerEvent("final", SESSION, 3, 0, 0, 900, "Good", WORDS)


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def test_the_description_is_whole() -> None:
    assert description()["asyncapi"] == "3.0.0"
    for reference in references(description()):
        node = description()
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        assert node
    channel = description()["channels"]["stream"]
    assert channel["address"] == "/ws/v1/stream"
    named = [*messages_of("speak"), *messages_of("tell")]
    assert sorted(named) == sorted(channel["messages"])
    assert all(validator(name) for name in named)


@pytest.mark.parametrize(
    "event",
    [
        wire.capture_ready_event(
            session=SESSION,
            state="live",
            admitted=ADMITTED,
            language="en",
            sample=0,
            next_sample=0,
            seq=0,
        ),
        wire.mode_event(SESSION, ADMITTED),
        wire.language_event(SESSION, ""),
        wire.change_refused_event(SESSION, wire.SetMode(77), REFUSAL),
        wire.change_refused_event(SESSION, wire.SetLanguage("yo"), REFUSAL),
        wire.error_event("", REFUSAL),
        wire.history_event(SESSION, [json.loads(json.dumps(members_of(FINAL)))]),
        members_of(FINAL),
        members_of(FINAL) | {"channel": 1, "speaker": "Caller"},
        members_of(ViewerEvent("partial", SESSION, None, 1, 0, 900, "Good", WORDS, 1, 950)),
        members_of(ViewerEvent("ack", SESSION, sample=800)),
        {"type": "ack", "sample": 800},
        members_of(ViewerEvent("gap", SESSION, 4, None, 900, 1200)),
        members_of(ViewerEvent("closed", SESSION, 5, None, 1200, 1200)),
        members_of(ViewerEvent("head", SESSION, 5)),
        members_of(ViewerEvent("lag", SESSION, behind_ms=700)),
        members_of(ViewerEvent("state", SESSION, state="waiting")),
    ],
    ids=lambda event: event["type"],
)
def test_each_event_is_described_once(event: dict[str, Any]) -> None:
    event = json.loads(json.dumps(event))
    assert len(matching("tell", event)) == 1
    assert f"`{event['type']}`" in PAGE


@pytest.mark.parametrize(
    "event",
    [
        {"type": "final", "session": SESSION, "text": "no seq"},
        {"type": "ack"},
        {"type": "unknown", "session": SESSION},
        {"type": "error", "code": "x"},
        members_of(FINAL) | {"channel": 2, "speaker": "Nobody"},
    ],
)
def test_what_is_wrong_is_not_described(event: dict[str, Any]) -> None:
    assert matching("tell", json.loads(json.dumps(event))) == []


@pytest.mark.parametrize(
    "message",
    [
        hello(token="tr_x"),
        hello(token="tr_x", encoding="alaw", sample_rate=8000, channels=2, speakers=["a", "b"]),
        {"type": "pause", "sample": 0},
        {"type": "stop", "sample": 2**32 - 1},
        {"type": "refetch", "after_seq": 7, "channel": 1},
        {"type": "set_mode", "mode_ms": 560},
        {"type": "set_language", "language": "de"},
    ],
    ids=lambda message: message["type"],
)
def test_each_described_message_is_understood(message: dict[str, Any]) -> None:
    assert len(matching("speak", message)) == 1
    assert wire.parse_message(json.dumps(message))


def test_examples_of_the_page_are_messages() -> None:
    blocks = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    greeting, ready = (json.loads(block) for block in blocks)
    assert wire.parse_message(json.dumps(greeting))
    assert matching("speak", greeting) == ["hello"]
    assert matching("tell", ready | {"session": SESSION}) == ["ready"]
    for line in re.findall(r"`(\{\"type\".*?\})`", PAGE):
        assert json.loads(line.replace(": n}", ": 0}"))["type"] in {
            *("ack", "pause", "resume", "refetch", "set_mode", "set_language")
        }


def test_the_page_has_every_encoding_and_close_code() -> None:
    schema = description()["components"]["messages"]["hello"]["payload"]["properties"]
    assert schema["encoding"]["enum"] == list(RATES)
    assert set(schema["sample_rate"]["enum"]) == {
        rate for rates in RATES.values() for rate in rates
    }
    assert schema["channels"]["maximum"] == wire.MAX_CHANNELS
    assert schema["reference"]["maxLength"] == wire.MAX_REFERENCE_CHARACTERS
    assert [code for code in CloseCode if f"| {int(code)} |" not in PAGE] == []
