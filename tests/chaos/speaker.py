"""Somebody who speaks numbered words into a live session, and what became of each word.

The scripted model reads the words out of the samples, so what is lost, doubled or out of order
anywhere on the way shows in the text.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from asr_engine.audio import BYTES_PER_SAMPLE, float_to_pcm16, samples_to_ms
from asr_engine.backends import scripted
from tests.e2e.conftest import Server
from transcription.runners.caption import CaptionStream, PcmSource


@dataclass(frozen=True, slots=True)
class Caption:
    """A partial, or a final that had not been shown: when it came, the position in the audio that
    it reaches, and how long before that it was spoken."""

    at_s: float
    is_final: bool
    end_ms: int
    lag_s: float


class Speech(PcmSource):
    """Utterances of numbered words, until there are `words` of them or `is_over` is set."""

    def __init__(self, *, first: int, words: int, utterance_words: int) -> None:
        self.blocks: list[int | None] = []
        """What was begun so far; an utterance that was begun is said to its end."""
        self.is_over = False
        self._numbers = range(first, first + words, utterance_words)
        self._utterance_words = utterance_words

    @property
    def pcm(self) -> bytes:
        return float_to_pcm16(scripted.encode_blocks(self.blocks))

    async def packets(self, samples: int) -> AsyncIterator[bytes]:
        size, rest = samples * BYTES_PER_SAMPLE, b""
        for number in self._numbers:
            utterance = scripted.script(self._utterance_words, first=number)
            self.blocks += utterance
            rest += float_to_pcm16(scripted.encode_blocks(utterance))
            while len(rest) >= size:
                yield rest[:size]
                rest = rest[size:]
            if self.is_over:
                break
        if rest:
            yield rest


class Speaker:
    """One stream with words of its own, from `first` on, which counts up to `words` of them."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        first: int,
        words: int,
        utterance_words: int = 8,
        speed: float = 1.0,
    ) -> None:
        self.speech = Speech(first=first, words=words, utterance_words=utterance_words)
        self.finals: dict[int, str] = {}
        self.changed_finals = 0
        self.captions: list[Caption] = []
        self.stream = CaptionStream(url, token, speed=speed, on_event=self._hear)
        self._speed = speed

    @property
    def spoken_ms(self) -> int:
        """How far the words are spoken at present."""
        return samples_to_ms(self.stream.report.sent_samples)

    @property
    def session(self) -> str:
        return self.stream.report.session

    async def speak(self) -> None:
        """From the first word to the closed session. Raises CaptionError."""
        await self.stream.run(self.speech)

    def _hear(self, event: dict[str, Any]) -> None:
        for heard in event["events"] if event["type"] == "history" else [event]:
            if heard["type"] == "final":
                is_new = heard["utterance"] not in self.finals
                known = self.finals.setdefault(heard["utterance"], heard["text"])
                self.changed_finals += known != heard["text"]
            else:
                is_new = heard["type"] == "partial"
            if is_new:
                self._note_caption(heard)

    def _note_caption(self, event: dict[str, Any]) -> None:
        now, end_ms = time.monotonic(), event["end_ms"]
        lag_s = now - self.stream._started_s - end_ms / 1000 / self._speed
        self.captions.append(Caption(now, event["type"] == "final", end_ms, lag_s))

    def shown(self) -> str:
        return " ".join(self.finals[number] for number in sorted(self.finals))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a session that has ended: nothing, where all is empty or zero."""

    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    is_in_order: bool
    changed_finals: int
    wrongly_shown: bool
    gaps_ms: tuple[tuple[int, int], ...]
    is_audio_whole: bool

    @property
    def is_well(self) -> bool:
        return self == WELL


WELL = Verdict((), (), True, 0, False, (), True)


def judge(server: Server, speaker: Speaker) -> Verdict:
    """Compare what was said with what is stored, with what was shown, and with the file."""
    session = UUID(speaker.session).hex
    rows = server.rows(
        "SELECT utterance, start_ms, text FROM transcription_liveutterance"
        " WHERE session_id = ? ORDER BY utterance",
        session,
    )
    gaps = server.rows(
        "SELECT start_ms, end_ms FROM transcription_livemark"
        " WHERE session_id = ? AND kind = 'gap' ORDER BY start_ms",
        session,
    )
    said = scripted.script_text(speaker.speech.blocks).split()
    stored = " ".join(text for _utterance, _start_ms, text in rows)
    counts = Counter(stored.split())
    starts = [start_ms for _utterance, start_ms, _text in rows]
    return Verdict(
        lost=tuple(word for word in said if not counts[word]),
        doubled=tuple(word for word, count in counts.items() if count > 1),
        is_in_order=(
            [row[0] for row in rows] == list(range(len(rows)))
            and starts == sorted(starts)
            and [word for word in stored.split() if word in set(said)]
            == [word for word in said if counts[word]]
        ),
        changed_finals=speaker.changed_finals,
        wrongly_shown=speaker.shown() != stored,
        gaps_ms=tuple((start_ms, end_ms) for start_ms, end_ms in gaps),
        is_audio_whole=server.recorded_pcm(speaker.session) == speaker.speech.pcm,
    )
