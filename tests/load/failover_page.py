"""The Markdown of docs/benchmarks-failover.md, of the figures of `tests.load.failover`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

Figures = dict[str, Any]

KINDS = {
    "restarted": (
        "The process is started again",
        "The supervisor of `make run` starts what was killed. At most 5 s are promised.",
        5.0,
    ),
    "standby": (
        "A standby takes over",
        (
            "A second engine and a second recorder run beside the first; what was killed stays"
            " dead. At most 15 s are promised. *drain* is `manage.py engines drain`: the engine is"
            " emptied while everybody speaks."
        ),
        15.0,
    ),
}
CLEAN = (
    ("lost_words", "words lost"),
    ("doubled_words", "words doubled"),
    ("out_of_order", "streams out of order"),
    ("changed_finals", "finals that changed"),
    ("wrongly_shown", "streams shown otherwise than stored"),
    ("gaps", "gaps marked"),
    ("incomplete_files", "recordings that lack a sample"),
)


def page(runs: Sequence[Figures], *, machine: str, loads: tuple[str, str]) -> str:
    """One section for each run."""
    lines = [
        "# Benchmarks of failover",
        "",
        "Written by `make bench-failover`; do not edit. Each process of a live server is killed",
        "with `kill -9` while streams speak in real time through real sockets. The scripted model",
        "reads its words out of the samples: every word is looked for in what was stored.",
        "",
        f"- Machine: {machine}; load average {loads[0]} before, {loads[1]} after. The streams'",
        "  clients run on the same machine.",
        f"- When: {datetime.now(UTC):%d %B %Y}",
        "",
        "*Captions* is the time from the kill to the first caption (partial or final) of words",
        "that were spoken after it, *finals* the same for finals alone: the median stream and the",
        "worst. It holds the speaker's own pauses of 2.4 s, and for finals the utterance of 1.6 s",
        "and the silence that ends it; *nothing* is the same figure with nothing killed. *Beyond*",
        "is what the worst stream waited beyond that, for captions or for finals, the larger.",
    ]
    for run in runs:
        lines += _section(run, {kind: _usual_s(runs, kind) for kind in ("captions_s", "finals_s")})
    return "\n".join(lines) + "\n"


def _usual_s(runs: Sequence[Figures], kind: str) -> float:
    """The worst stream's wait for `kind` of captions with nothing killed."""
    return max(
        (
            float(phase[kind]["worst"])
            for run in runs
            for phase in run["phases"]
            if phase["what"] == "nothing"
        ),
        default=0.0,
    )


def _section(run: Figures, usual_s: dict[str, float]) -> list[str]:
    heading, note, promised_s = KINDS[run["kind"]]
    lines = [
        "",
        f"## {heading}",
        "",
        f"{run['streams']} streams. {note}",
        "",
        "| killed | captions: median, worst | finals: median, worst | beyond | kept |",
        "|---|---|---|---|---|",
    ]
    for phase in run["phases"]:
        captions, finals = phase["captions_s"], phase["finals_s"]
        beyond_s = max(0.0, *(phase[kind]["worst"] - usual for kind, usual in usual_s.items()))
        is_nothing = phase["what"] == "nothing"
        kept = "yes" if beyond_s <= promised_s else "**no**"
        lines.append(
            f"| {phase['what']} | {captions['median']:.1f} s, {captions['worst']:.1f} s "
            f"| {finals['median']:.1f} s, {finals['worst']:.1f} s "
            + ("| | |" if is_nothing else f"| {beyond_s:.1f} s | {kept} |")
        )
    lines += [
        "",
        "After all of it: " + ", ".join(f"{run[name]} {words}" for name, words in CLEAN) + ".",
    ]
    return lines
