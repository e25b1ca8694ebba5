"""What the live sockets say: the client's messages, close codes, and errors turned into them.

Owns the JSON of `/ws/v1/live/<session>/capture`, `/captions` and `/ws/v1/stream`. Server events
have the members of `asr_engine.protocol.ViewerEvent`; `ready`, `history`, `mode`, `mode_refused`,
`language`, `language_refused` and `error` are made here.
Audio packets are `asr_engine.protocol.Packet`. Does no I/O.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any, Final

from asr_engine.errors import AdmissionError, EngineError
from asr_engine.protocol import PROTOCOL_VERSION, Reply
from transcription import errors
from transcription.latency_modes import mode_choices
from transcription.realtime.encodings import RATES, AudioFormat

MAX_MESSAGE_CHARACTERS: Final = 8192
HISTORY_BATCH: Final = 200
"""Events in one `history` message."""
_CAPTURE_ID: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")
_MAX_SAMPLE: Final = 2**32 - 1
_MAX_MODE_MS: Final = 10_000
_MAX_LANGUAGE_CHARACTERS: Final = 16
MAX_CHANNELS: Final = 2
MAX_SPEAKER_CHARACTERS: Final = 100
MAX_REFERENCE_CHARACTERS: Final = 64


class CloseCode(IntEnum):
    """Why the server closes a socket. An `error` event with code and reason comes before."""

    NORMAL = 1000
    BAD_MESSAGE = 4400
    LOGIN_NEEDED = 4401
    FORBIDDEN = 4403
    NOT_FOUND = 4404
    IN_USE = 4409
    ENDED = 4410
    TOO_FAST = 4429
    TRY_LATER = 4503
    """Not 1013: Daphne's WebSocket library lets a server send only 1000 and 3000 to 4999."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as a socket tells it: `reason` is a sentence that a person can read."""

    close_code: CloseCode
    code: str
    reason: str


# The most special class first.
_CLOSE_CODES: Final[tuple[tuple[type[Exception], CloseCode], ...]] = (
    (errors.NotAuthenticatedError, CloseCode.LOGIN_NEEDED),
    (errors.ForbiddenError, CloseCode.FORBIDDEN),
    (errors.NotFoundError, CloseCode.NOT_FOUND),
    (errors.InUseError, CloseCode.IN_USE),
    (errors.ConflictError, CloseCode.ENDED),
    (errors.TooFastError, CloseCode.TOO_FAST),
    (errors.InvalidInputError, CloseCode.BAD_MESSAGE),
    (errors.ProductError, CloseCode.TRY_LATER),
    (AdmissionError, CloseCode.TRY_LATER),
    (EngineError, CloseCode.BAD_MESSAGE),
)


def refusal_of(error: errors.ProductError | EngineError) -> Refusal:
    """The one mapping from errors to close codes."""
    close_code = next(code for kind, code in _CLOSE_CODES if isinstance(error, kind))
    reason = error.text if isinstance(error, errors.ProductError) else error.sentence
    return Refusal(close_code, error.code, reason)


# Client messages ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a capture socket.

    `capture_id` is random and kept by the page: the same one takes its session over again at once.
    `language` empty means the session's own choice, `mode_ms` 0 the engine's default. What follows
    `is_taking_over` is for `/ws/v1/stream` alone: `sessions` to come back to (one for each channel,
    or none), `reference` for what the tool calls it.
    """

    capture_id: str
    language: str = ""
    mode_ms: int = 0
    is_taking_over: bool = False
    audio: AudioFormat = field(default_factory=AudioFormat)
    channels: int = 1
    token: str = ""
    title: str = ""
    reference: str = ""
    sessions: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """`pause`, `resume` or `stop` at the index of the first sample that is not before it."""

    kind: str
    sample: int


@dataclass(frozen=True, slots=True)
class Refetch:
    """A viewer missed something: send the stored changes after `after_seq` again."""

    after_seq: int


@dataclass(frozen=True, slots=True)
class ShowLink:
    """The first message of a captions socket that was opened with `?by=link`: the link's token,
    which never stands in an address of a socket."""

    token: str


@dataclass(frozen=True, slots=True)
class SetMode:
    """Change the latency mode while the capture runs, after `ready`.

    Answered by `mode` or `mode_refused`, which changes nothing; of several that wait for their
    answer only the last is asked for. Audio may go on meanwhile.
    """

    mode_ms: int


@dataclass(frozen=True, slots=True)
class SetLanguage:
    """Change the spoken language (empty: detect it) from the next utterance on, after `ready`.

    Answered by `language` or `language_refused`, as SetMode is.
    """

    language: str


Change = SetMode | SetLanguage
ClientMessage = Hello | Mark | Refetch | ShowLink | Change


def parse_message(text: str) -> ClientMessage:
    """Raises InvalidInputError with a sentence that names the member at fault."""
    if len(text) > MAX_MESSAGE_CHARACTERS:
        raise errors.InvalidInputError("The message is too long.")
    try:
        data = json.loads(text)
    except ValueError:
        raise errors.InvalidInputError("The message is not JSON.") from None
    if not isinstance(data, dict):
        raise errors.InvalidInputError("The message is not a JSON object.")
    match data.get("type"):
        case "hello":
            return _parse_hello(data)
        case "pause" | "resume" | "stop" as kind:
            return Mark(kind, _integer(data, "sample", _MAX_SAMPLE))
        case "refetch":
            return Refetch(_integer(data, "after_seq", _MAX_SAMPLE))
        case "link":
            return ShowLink(_string(data, "token", 64))
        case "set_mode":
            return SetMode(_integer(data, "mode_ms", _MAX_MODE_MS))
        case "set_language":
            return SetLanguage(_string(data, "language", _MAX_LANGUAGE_CHARACTERS))
        case _:
            raise errors.InvalidInputError("The message has an unknown type.")


def _parse_hello(data: dict[str, Any]) -> Hello:
    if data.get("version") != PROTOCOL_VERSION:
        raise errors.InvalidInputError(f"The protocol's version here is {PROTOCOL_VERSION}.")
    capture_id = _string(data, "capture_id", 64)
    if not _CAPTURE_ID.fullmatch(capture_id):
        raise errors.InvalidInputError("The capture_id must be 8 to 64 letters and digits.")
    channels = _integer(data, "channels", MAX_CHANNELS, default=1) or 1
    session = _string(data, "session", 36)
    sessions = _strings(data, "sessions", 36) or ((session,) if session else ())
    if len(sessions) not in {0, channels}:
        raise errors.InvalidInputError("Name one session for each channel, or none.")
    speakers = _strings(data, "speakers", MAX_SPEAKER_CHARACTERS)
    if len(speakers) not in {0, channels}:
        raise errors.InvalidInputError("Name one speaker for each channel, or none.")
    return Hello(
        capture_id=capture_id,
        language=_string(data, "language", _MAX_LANGUAGE_CHARACTERS),
        mode_ms=_integer(data, "mode_ms", _MAX_MODE_MS, default=0),
        is_taking_over=data.get("take_over") is True,
        audio=_audio_format(data),
        channels=channels,
        token=_string(data, "token", 200),
        title=_string(data, "title", 300),
        reference=_string(data, "reference", MAX_REFERENCE_CHARACTERS),
        sessions=sessions,
        speakers=speakers,
    )


def _audio_format(data: dict[str, Any]) -> AudioFormat:
    encoding = _string(data, "encoding", 10)
    rates = RATES.get(encoding)
    if rates is None:
        raise errors.InvalidInputError(f"The encoding must be one of {', '.join(RATES)}.")
    if data.get("sample_rate") not in rates:
        choices = " or ".join(str(rate) for rate in rates)
        raise errors.InvalidInputError(f"Audio in {encoding} must have {choices} samples a second.")
    return AudioFormat(encoding, data["sample_rate"])


def _string(data: dict[str, Any], name: str, limit: int) -> str:
    value = data.get(name, "")
    if not isinstance(value, str) or len(value) > limit or "\0" in value:
        raise errors.InvalidInputError(f"{name} must be text of at most {limit} characters.")
    return value


def _strings(data: dict[str, Any], name: str, limit: int) -> tuple[str, ...]:
    values = data.get(name, [])
    if not isinstance(values, list) or len(values) > MAX_CHANNELS:
        raise errors.InvalidInputError(f"{name} must be a list of at most {MAX_CHANNELS}.")
    return tuple(_string({name: value}, name, limit) for value in values)


def _integer(data: dict[str, Any], name: str, limit: int, *, default: int | None = None) -> int:
    value = data.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
        raise errors.InvalidInputError(f"{name} must be a whole number from 0 to {limit}.")
    return value


# Server events -----------------------------------------------------------------------------------


def dump(event: dict[str, Any]) -> str:
    """Compact JSON."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def error_event(session: str, refusal: Refusal) -> dict[str, Any]:
    """`session` is left out where there is none (yet)."""
    event = {"type": "error", "code": refusal.code, "reason": refusal.reason}
    return {**event, "session": session} if session else event


def capture_ready_event(
    *,
    session: str,
    state: str,
    admitted: Reply,
    language: str,
    sample: int,
    next_sample: int,
    seq: int,
) -> dict[str, Any]:
    """`sample`: all before it is on disk. `next_sample`: where the session's clock stands now, for
    a page that has no clock of its own (a first start, another device). The mode as in `mode`, the
    language as in `language`."""
    return {
        "type": "ready",
        "session": session,
        "state": state,
        **_mode_members(admitted),
        "language": language,
        "sample": sample,
        "next_sample": next_sample,
        "seq": seq,
    }


def mode_event(session: str, admitted: Reply) -> dict[str, Any]:
    """The latency mode in force from now on, and what goes with it: `packet_ms`, the length that
    the next packets should have, and `modes`, the choices in words, none where there is no choice.
    """
    return {"type": "mode", "session": session, **_mode_members(admitted)}


def language_event(session: str, language: str) -> dict[str, Any]:
    """The language from the next utterance on; empty where each is detected."""
    return {"type": "language", "session": session, "language": language}


def change_refused_event(session: str, change: Change, refusal: Refusal) -> dict[str, Any]:
    """`mode_refused` or `language_refused`: `change` is not in force, and what was is still. The
    socket stays open."""
    is_mode = isinstance(change, SetMode)
    return {
        "type": "mode_refused" if is_mode else "language_refused",
        "session": session,
        **asdict(change),
        "code": refusal.code,
        "reason": refusal.reason,
    }


def _mode_members(admitted: Reply) -> dict[str, Any]:
    choices = mode_choices(admitted.modes_ms)
    return {
        "packet_ms": admitted.packet_ms,
        "mode_ms": admitted.mode_ms,
        "modes": [{"mode_ms": mode_ms, "words": words} for mode_ms, words in choices],
    }


def captions_ready_event(
    *, session: str, state: str, seq: int, title: str, recording: str | None
) -> dict[str, Any]:
    event = {"type": "ready", "session": session, "state": state, "seq": seq, "title": title}
    return event if recording is None else {**event, "recording": recording}


def readers_event(session: str, count: int) -> dict[str, Any]:
    """About how many read along: for the speaker's page."""
    return {"type": "readers", "session": session, "count": count}


def history_event(session: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "history", "session": session, "events": events}
