"""docs/benchmarks-live.md, from the lines of `tests.load.bench_live`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.load.machine import machine

Line = dict[str, Any]


def page(lines: list[Line]) -> str:
    """The Markdown. Parts that were not measured are left out."""
    loads = [float(line[key]) for line in lines for key in ("load_before", "load_after")]
    said = [
        "# Live captions at size",
        "",
        "Written by `make bench-live`; do not edit. Real sockets in real time, on one machine that",
        "runs the server and the load together, with the scripted model: it reads its words out of",
        "the samples, so that a lost, doubled or reordered packet shows in the text. *Added delay*",
        "is the server's share: from the moment that the packet left which completed what the",
        "engine had heard, until the caption arrived. The second pass over closed utterances is",
        "off (`TRANSCRIBE_LIVE_REFINE`). Absolute times belong to the machine.",
        "",
        f"- Machine: {machine()}",
        f"- When: {datetime.now(UTC):%Y-%m-%d}",
    ]
    if loads:
        said.append(
            f"- Load average from {min(loads):.1f} to {max(loads):.1f}, the server's and the "
            "load generator's own work included (1.0 is one busy core)"
        )
    for part, write in _PARTS.items():
        if chosen := [line for line in lines if line["part"] == part]:
            said += ["", *write(chosen)]
    return "\n".join(said) + "\n"


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1000:.0f}"


def _lost(line: Line) -> str:
    stored = line["stored"]
    readers = line.get("viewers") or {}
    lost = stored["words_lost"], stored["words_doubled"]
    events = line["lost_events"] + readers.get("lost_events", 0) + readers.get("lost_finals", 0)
    return f"{lost[0]} / {lost[1]} / {events}"


def _cores(line: Line) -> str:
    """Web, engine, recorder, both servers, and the load itself."""
    used = {name: figures["cores"] for name, figures in line["processes"].items()}
    web = sum(cores for name, cores in used.items() if name.startswith("web"))
    servers = used.get("broker", 0.0) + used.get("audio", 0.0)
    parts = (web, used.get("engine", 0.0), used.get("recorder", 0.0), servers)
    return " / ".join(f"{cores:.2f}" for cores in (*parts, line["generator"]["cores"]))


def _delays(name: str, figures: dict[str, Any]) -> str:
    minutes = [_ms(minute["p50"]) for minute in figures["minutes"]]
    return (
        f"| {name} | {_ms(figures['p50'])} | {_ms(figures['p95'])} | {_ms(figures['p99'])} | "
        f"{', '.join(minutes)} | {_ms(figures['drift_s'])} | {figures['events']} |"
    )


def _one_run(line: Line) -> list[str]:
    said = [
        "| | added delay p50 ms | p95 | p99 | median by minute | drift ms | events |",
        "|---|---|---|---|---|---|---|",
        _delays("partials at the speakers", line["added_delay_s"]),
        _delays("finals at the speakers", line["added_final_delay_s"]),
    ]
    if readers := line.get("viewers"):
        said += [
            _delays("partials at the readers", readers["added_delay_s"]),
            _delays("finals at the readers", readers["added_final_delay_s"]),
        ]
    return [
        *said,
        "",
        (
            f"Words lost / words doubled / events missed: {_lost(line)}. Refused: "
            f"{line['refusals'] or 'none'}. Cores of web / engine / recorder / both Redis servers "
            f"/ load: {_cores(line)}. The load left its packets "
            f"{_ms(line['sender_late_s']['p95'])} ms late at p95, which is not counted."
        ),
    ]


def _captures(lines: list[Line]) -> list[str]:
    said = ["## Many captures"]
    for line in lines:
        readers = line["viewers"]["viewers"] if line.get("viewers") else 0
        said += [
            "",
            (
                f"{line['streams']} captures with packets of {line['packet_ms']} ms for "
                f"{line['audio_s']:.0f} s, {readers} readers on one of them, {line['web']} web "
                f"process{'es' if line['web'] > 1 else ''}."
            ),
            "",
            *_one_run(line),
        ]
    return said


def _viewers(lines: list[Line]) -> list[str]:
    said = ["## Many readers"]
    for line in lines:
        said += [
            "",
            (
                f"One capture for {line['audio_s']:.0f} s, {line['viewers']['viewers']} readers, "
                f"{line['web']} web process{'es' if line['web'] > 1 else ''}."
            ),
            "",
            *_one_run(line),
        ]
    return said


def _opens(lines: list[Line]) -> list[str]:
    return ["## More opens than slots", "", *(_one_opening(line) for line in lines)]


def _one_opening(line: Line) -> str:
    reasons = " ".join(f"“{reason}”" for reason in line["reasons"])
    return (
        f"{line['opens']} opens in the same moment at {line['slots']} slots: {line['admitted']} "
        f"admitted, {len(line['refused'])} refused, {line['without_reason']} of them without a "
        f"reason. Reasons: {reasons}"
    )


def _largest(lines: list[Line]) -> list[str]:
    said = [
        "## The largest number of captures",
        "",
        "Sizes rise until something is lost, refused, or late (p95 of the added delay above 60 ms,",
        "or the end's median 50 ms above the beginning's). Cores as above.",
        "",
        (
            "| web | packet ms | captures | added delay p50 / p95 ms | drift ms | lost / doubled / "
            "missed | refused | cores | passed |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        added = line["added_delay_s"]
        passed = "yes" if line["is_right"] and line["is_on_time"] else "no"
        said.append(
            f"| {line['web']} | {line['packet_ms']} | {line['streams']} | {_ms(added['p50'])} / "
            f"{_ms(added['p95'])} | {_ms(added['drift_s'])} | {_lost(line)} | "
            f"{len(line['refused'])} | {_cores(line)} | {passed} |"
        )
    return said


def _soak(lines: list[Line]) -> list[str]:
    said = ["## A long session"]
    for line in lines:
        samples = line["samples"]
        said += [
            "",
            f"One session of {line['hours']:g} hours, spoken at {line['speed']:g} times real time:",
            "its clock counts samples, and it is made as if it had begun a day before, as audio is",
            "that was kept during an outage. Everything by the audio (slots, utterances, disk,",
            "history, feeds) is as in real time; what counts by the wall (heads, leases, checks of",
            f"rights) ran {line['speed']:g} times less often.",
            "",
            *_one_run(line),
            "",
            "| process | " + " | ".join(f"{share:.0%}" for share in _QUARTERS) + " of the run |",
            "|---|---|---|---|---|",
        ]
        for name in ("web", "engine", "recorder", "broker", "audio"):
            cells = []
            for share in _QUARTERS:
                at = samples[min(len(samples) - 1, int(share * len(samples)))]["by_name"]
                one = at.get(name)
                cells.append(
                    f"{one['memory_mib']:.0f} MiB, {one['descriptors']} descriptors" if one else "–"
                )
            said.append(f"| {name} | " + " | ".join(cells) + " |")
    return said


def _peer(lines: list[Line]) -> list[str]:
    said = [
        "## Beside another server",
        "",
        "The same speech, weights and number of clients. The lag counts from the end of the words,",
        "as each server times them, to their arrival.",
        "",
        "| server | model | streams | lag p50 / p95 s | cores | connected |",
        "|---|---|---|---|---|---|",
    ]
    for line in lines:
        lag = line["lag_s"]
        said.append(
            f"| {line['server']} | {line['model']} | {line['streams']} | {lag['p50']} / "
            f"{lag['p95']} | {line['cores']:.2f} | {line['connected']} |"
        )
    return said


_QUARTERS = (0.1, 0.4, 0.7, 0.95)
_PARTS: dict[str, Callable[[list[Line]], list[str]]] = {
    "captures": _captures,
    "viewers": _viewers,
    "opens": _opens,
    "largest": _largest,
    "soak": _soak,
    "peer": _peer,
}
