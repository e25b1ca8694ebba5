"""The wire schema: what a client may say, and how errors become close codes."""

from __future__ import annotations

import json

import pytest

from asr_engine.errors import BadPacketError, NoFreeSlotError, UnsupportedLanguageError
from asr_engine.protocol import Reply
from transcription import errors
from transcription.realtime import wire
from transcription.realtime.wire import CloseCode


@pytest.mark.parametrize("code", list(CloseCode))
def test_close_code_is_one_that_daphne_can_send(code: CloseCode) -> None:
    """autobahn refuses others, 1013 among them, and the consumer would fail."""
    assert code == 1000 or 3000 <= code <= 4999


@pytest.mark.parametrize(
    ("error", "close_code", "code"),
    [
        (errors.NotAuthenticatedError(), CloseCode.LOGIN_NEEDED, "not_authenticated"),
        (errors.MissingScopeError("live:write"), CloseCode.FORBIDDEN, "missing_scope"),
        (errors.NotFoundError(), CloseCode.NOT_FOUND, "not_found"),
        (errors.InUseError(), CloseCode.IN_USE, "in_use"),
        (errors.SessionEndedError(), CloseCode.ENDED, "ended"),
        (errors.TooFastError(), CloseCode.TOO_FAST, "too_fast"),
        (errors.InvalidInputError(), CloseCode.BAD_MESSAGE, "invalid_input"),
        (errors.TryLaterError(), CloseCode.TRY_LATER, "try_later"),
        (NoFreeSlotError("20 of 20"), CloseCode.TRY_LATER, "no_free_slot"),
        (UnsupportedLanguageError(), CloseCode.BAD_MESSAGE, "unsupported_language"),
        (BadPacketError(), CloseCode.BAD_MESSAGE, "bad_packet"),
    ],
)
def test_each_error_has_its_close_code_and_a_sentence(
    error: Exception, close_code: CloseCode, code: str
) -> None:
    refusal = wire.refusal_of(error)  # type: ignore[arg-type]
    assert (refusal.close_code, refusal.code) == (close_code, code)
    assert refusal.reason.endswith(".")


def test_message_of_any_kind_is_understood() -> None:
    assert wire.parse_message('{"type":"pause","sample":5}') == wire.Mark("pause", 5)
    assert wire.parse_message('{"type":"refetch","after_seq":7}') == wire.Refetch(7)
    assert wire.parse_message('{"type":"set_mode","mode_ms":560}') == wire.SetMode(560)
    assert wire.parse_message('{"type":"set_language","language":"de"}') == wire.SetLanguage("de")


@pytest.mark.parametrize("sample", [None, -1, 1.5, True, "5", 2**32])
def test_sample_must_be_a_whole_number_in_range(sample: object) -> None:
    with pytest.raises(errors.InvalidInputError, match="sample"):
        wire.parse_message(json.dumps({"type": "stop", "sample": sample}))


@pytest.mark.parametrize("mode_ms", [None, -1, 1.5, True, "560", 10_001])
def test_mode_must_be_a_whole_number_in_range(mode_ms: object) -> None:
    with pytest.raises(errors.InvalidInputError, match="mode_ms"):
        wire.parse_message(json.dumps({"type": "set_mode", "mode_ms": mode_ms}))


@pytest.mark.parametrize("language", [None, 7, "x" * 17, ["de"]])
def test_language_to_change_to_is_a_short_text(language: object) -> None:
    with pytest.raises(errors.InvalidInputError, match="language"):
        wire.parse_message(json.dumps({"type": "set_language", "language": language}))


def test_a_refused_change_says_which_and_why() -> None:
    refusal = wire.refusal_of(UnsupportedLanguageError())
    event = wire.change_refused_event("s", wire.SetLanguage("yo"), refusal)
    assert (event["type"], event["language"]) == ("language_refused", "yo")
    assert event["code"] == "unsupported_language"
    mode = wire.change_refused_event("s", wire.SetMode(77), refusal)
    assert (mode["type"], mode["mode_ms"]) == ("mode_refused", 77)


def test_one_mode_is_told_without_a_choice() -> None:
    event = wire.mode_event("s", Reply(True, "one", 1, 560, 200, modes_ms=(560,)))
    assert (event["mode_ms"], event["packet_ms"], event["modes"]) == (560, 200, [])


def test_long_message_is_refused_unread() -> None:
    with pytest.raises(errors.InvalidInputError, match="too long"):
        wire.parse_message(" " * (wire.MAX_MESSAGE_CHARACTERS + 1))
