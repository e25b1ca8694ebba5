"""What a run of `manage.py caption` saw, as figures: delays by the minute, drift, what was lost.

Two delays. The *lag* counts from the end of the words, so it holds the packet, the model's chunk
and its look-ahead. The *added delay* is the server's own share: from the moment that the packet
left which completed what the engine had heard (`heard_ms` of a partial) until the partial arrived.
For a final it counts from the packet that completed the silence rule. Pure: reads no clock and no
socket.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from asr_engine.audio import SAMPLE_RATE, samples_to_ms
from asr_engine.endpointing import EndpointRules

MINUTE_S: Final = 60.0
WINDOW_MS: Final = 32
"""Voice activity is decided by windows of so much, counted from the stream's first sample."""


@dataclass(slots=True)
class Arrivals:
    """Events of one kind in parallel lists, small enough for hours: when each came (monotonic
    seconds), and the position in the audio that it is measured against."""

    at_s: list[float] = field(default_factory=list)
    position_ms: list[int] = field(default_factory=list)

    def add(self, at_s: float, position_ms: int) -> None:
        self.at_s.append(at_s)
        self.position_ms.append(position_ms)


@dataclass(slots=True)
class Heard:
    """What one socket heard of a session."""

    partials: Arrivals = field(default_factory=Arrivals)
    """Measured against `heard_ms`."""
    finals_at: Arrivals = field(default_factory=Arrivals)
    """Measured against the end of the words and the silence rule."""
    finals: dict[int, str] = field(default_factory=dict)
    refined: dict[int, str] = field(default_factory=dict)
    """What the second pass made of finals."""
    refined_after_s: list[float] = field(default_factory=list)
    """From a final's arrival to that of its refined text."""
    final_at_s: dict[int, float] = field(default_factory=dict)
    seqs: set[int] = field(default_factory=set)
    superseded: int = 0
    """Finals that only came as refined: what was missed is read as it stands by then."""
    doubled: int = 0
    """Finals that came again with another text. (The same one twice is what `seq` is for.)"""

    def missed_seqs(self) -> int:
        """Stored changes that never came, as their numbers tell."""
        return max(0, max(self.seqs, default=0) - len(self.seqs) - self.superseded)

    def note_partial(self, event: dict[str, Any], at_s: float) -> None:
        if heard_ms := event.get("heard_ms"):
            self.partials.add(at_s, heard_ms)

    def note_final(self, event: dict[str, Any], at_s: float) -> None:
        """A final that came live; call before `keep`."""
        if event["utterance"] not in self.finals:
            self.finals_at.add(at_s, endpoint_ms(event["end_ms"]))
            self.final_at_s[event["utterance"]] = at_s

    def note_refined(self, event: dict[str, Any], at_s: float) -> None:
        """Refined text that came live; call before `keep`."""
        final_at_s = self.final_at_s.get(event["utterance"])
        if final_at_s is not None and event["utterance"] not in self.refined:
            self.refined_after_s.append(at_s - final_at_s)

    def keep(self, event: dict[str, Any]) -> None:
        """A stored change, live or from the history."""
        if "seq" in event:
            self.seqs.add(event["seq"])
        if event["type"] == "refined":
            self.superseded += event["utterance"] not in self.finals
            self.finals.setdefault(event["utterance"], event["text"])
            self.refined[event["utterance"]] = event["text"]
        elif event["type"] == "final" and event["utterance"] not in self.refined:
            known = self.finals.get(event["utterance"])
            self.doubled += known is not None and known != event["text"]
            self.finals[event["utterance"]] = event["text"]

    @property
    def text(self) -> str:
        return " ".join(self.finals[number] for number in sorted(self.finals))


@dataclass(slots=True)
class StreamReport:
    """What one stream saw. Lags are seconds from the end of the words to their arrival."""

    heard: Heard = field(default_factory=Heard)
    utterance_starts: set[int] = field(default_factory=set)
    first_partial_s: list[float] = field(default_factory=list)
    final_s: list[float] = field(default_factory=list)
    lags_s: list[float] = field(default_factory=list)
    sent_at_s: list[float] = field(default_factory=list)
    """When each packet left first, by its number (monotonic)."""
    late_s: list[float] = field(default_factory=list)
    """How much later each packet left than its last sample was spoken: our own slowness."""
    packet_samples: int = 0
    sent_samples: int = 0
    acknowledged_samples: int = 0
    reconnections: int = 0
    session: str = ""
    recording: str = ""
    problem: str = ""
    problem_code: str = ""

    def sent_s(self, position_ms: int) -> float | None:
        """When the packet left that completed the audio up to `position_ms`."""
        if not self.packet_samples or not self.sent_at_s:
            return None
        samples = position_ms * SAMPLE_RATE // 1000
        number = max(0, -(-samples // self.packet_samples) - 1)
        return self.sent_at_s[min(number, len(self.sent_at_s) - 1)]


@dataclass(slots=True)
class ViewerReport:
    """What one reader of a session saw, and why it was refused or cut off."""

    heard: Heard = field(default_factory=Heard)
    problem: str = ""
    problem_code: str = ""


def endpoint_ms(end_ms: int) -> int:
    """Where silence after speech that ended at `end_ms` is long enough: whole windows of both."""
    rule_ms = EndpointRules().silence_ms
    return (-(-end_ms // WINDOW_MS) - (-rule_ms // WINDOW_MS)) * WINDOW_MS


def percentile(values: Sequence[float], share: float) -> float | None:
    """Nearest-rank percentile, rounded to milliseconds; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)


def drift_s(lags_s: Sequence[float]) -> float | None:
    """Median lag of the last quarter less that of the first."""
    quarter = len(lags_s) // 4
    if not quarter:
        return None
    return round(statistics.median(lags_s[-quarter:]) - statistics.median(lags_s[:quarter]), 3)


def spread_of(values: Sequence[float]) -> dict[str, float | None]:
    return {"p50": percentile(values, 0.5), "p95": percentile(values, 0.95)}


def delays_of(arrivals: Arrivals, stream: StreamReport) -> list[tuple[float, float]]:
    """[(seconds since the stream's first packet, delay in seconds)] of arrivals at any reader."""
    if not stream.sent_at_s:
        return []
    first_s = stream.sent_at_s[0]
    delays = []
    for at_s, position_ms in zip(arrivals.at_s, arrivals.position_ms, strict=True):
        sent_s = stream.sent_s(position_ms)
        if sent_s is not None:
            delays.append((at_s - first_s, at_s - sent_s))
    return delays


def by_minute(delays: Iterable[tuple[float, float]]) -> dict[str, Any]:
    """Figures of all delays, and of each minute of them. `drift_s`: the last whole minute's median
    less the first's (of the halves, where there are no two whole minutes)."""
    timed = sorted(delays)
    every = [delay for _, delay in timed]
    minutes: dict[int, list[float]] = {}
    for at_s, delay in timed:
        minutes.setdefault(int(at_s // MINUTE_S), []).append(delay)
    # The last minute has begun only: it counts if it holds as much as half of the one before.
    numbers = sorted(minutes)
    if len(numbers) > 1 and len(minutes[numbers[-1]]) < len(minutes[numbers[-2]]) / 2:
        minutes[numbers[-2]] += minutes.pop(numbers[-1])
        numbers.pop()
    if len(numbers) > 1:
        first, last = minutes[numbers[0]], minutes[numbers[-1]]
    else:
        first, last = every[: len(every) // 2], every[len(every) // 2 :]
    drift = None
    if first and last:
        drift = round(statistics.median(last) - statistics.median(first), 4)
    return {
        **spread_of(every),
        "p99": percentile(every, 0.99),
        "events": len(every),
        "drift_s": drift,
        "minutes": [spread_of(minutes[number]) for number in numbers],
    }


def words_off(text: str, expected: str) -> tuple[int, int]:
    """(words missing, words too many) of `text`, counted as a bag: what was lost and doubled."""
    had, wanted = Counter(text.split()), Counter(expected.split())
    return (wanted - had).total(), (had - wanted).total()


def summarise(
    reports: Sequence[StreamReport],
    viewers: Sequence[ViewerReport] = (),
    *,
    expected: str = "",
) -> dict[str, Any]:
    """Figures over all streams and readers, JSON-able. The readers read the first stream's session.

    `time_to_first_partial_s` counts from the start of an utterance's first word, `time_to_final_s`
    from the end of its last, as the engine timed them. `final_to_refined_s` counts from one arrival
    to the other; all else is of the live pass alone. With `expected`, what every stream should
    have said, `text` has what was lost and doubled of it.
    """
    lags = [lag for report in reports for lag in report.lags_s]
    finals = [lag for report in reports for lag in report.final_s]
    partials = [lag for report in reports for lag in report.first_partial_s]
    drifts = [drift for report in reports if (drift := drift_s(report.lags_s)) is not None]
    lost = [report.sent_samples - report.acknowledged_samples for report in reports]
    summary = {
        "streams": len(reports),
        "refused": [report.problem for report in reports if not report.session],
        "refusals": _codes(report.problem_code for report in reports if not report.session),
        "problems": _codes(report.problem_code for report in reports if report.session),
        "audio_s": round(max((r.sent_samples for r in reports), default=0) / SAMPLE_RATE, 1),
        "finals": sum(len(report.heard.finals) for report in reports),
        "refined": sum(len(report.heard.refined) for report in reports),
        "final_to_refined_s": spread_of(
            [waited for report in reports for waited in report.heard.refined_after_s]
        ),
        "time_to_first_partial_s": spread_of(partials),
        "time_to_final_s": spread_of(finals),
        "lag_s": spread_of(lags),
        "drift_s": max(drifts, default=None),
        "added_delay_s": by_minute(_delays(reports, lambda heard: heard.partials)),
        "added_final_delay_s": by_minute(_delays(reports, lambda heard: heard.finals_at)),
        "lost_events": sum(report.heard.missed_seqs() for report in reports),
        "doubled_events": sum(report.heard.doubled for report in reports),
        "unacknowledged_ms": samples_to_ms(sum(lost)),
        "reconnections": sum(report.reconnections for report in reports),
        "sender_late_s": spread_of([late for report in reports for late in report.late_s]),
        "recordings": [report.recording for report in reports if report.recording],
    }
    if expected:
        admitted = [report.heard.text for report in reports if report.session]
        summary["text"] = compare(admitted, expected)
    if viewers and reports:
        summary["viewers"] = summarise_viewers(reports[0], viewers)
    return summary


def summarise_viewers(stream: StreamReport, viewers: Sequence[ViewerReport]) -> dict[str, Any]:
    """Figures of the readers of `stream`; what they missed is counted against what it heard."""
    present = [viewer for viewer in viewers if not viewer.problem]

    def delays(what: Callable[[Heard], Arrivals]) -> list[tuple[float, float]]:
        return [pair for viewer in present for pair in delays_of(what(viewer.heard), stream)]

    finals = stream.heard.finals
    return {
        "viewers": len(viewers),
        "refusals": _codes(viewer.problem_code for viewer in viewers if viewer.problem),
        "added_delay_s": by_minute(delays(lambda heard: heard.partials)),
        "added_final_delay_s": by_minute(delays(lambda heard: heard.finals_at)),
        "lost_events": sum(viewer.heard.missed_seqs() for viewer in present),
        "lost_finals": sum(len(finals.keys() - viewer.heard.finals.keys()) for viewer in present),
        "doubled_events": sum(viewer.heard.doubled for viewer in present),
    }


def _delays(
    reports: Sequence[StreamReport], what: Callable[[Heard], Arrivals]
) -> list[tuple[float, float]]:
    return [pair for report in reports for pair in delays_of(what(report.heard), report)]


def _codes(codes: Iterable[str]) -> dict[str, int]:
    return dict(Counter(code for code in codes if code))


def compare(texts: Sequence[str], expected: str) -> dict[str, int]:
    """How many of `texts` are as expected, and what all of them lack and have too much."""
    off = [words_off(text, expected) for text in texts]
    return {
        "right": sum(text == expected for text in texts),
        "wrong": sum(text != expected for text in texts),
        "words_lost": sum(lost for lost, _ in off),
        "words_doubled": sum(doubled for _, doubled in off),
    }
