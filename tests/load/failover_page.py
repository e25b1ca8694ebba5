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
        "and the silence that ends it. *Latest final* is how long after its last word the latest",
        "final of the streams came, and *beyond* how much that is more than with *nothing* killed:",
        "how long the failure alone kept people waiting.",
    ]
    for run in runs:
        lines += _section(run)
    return "\n".join(lines) + "\n"


def _usual_lag_s(run: Figures) -> float:
    """How late the latest final came with nothing killed."""
    return max(
        (
            float(phase["final_lags_s"]["worst"])
            for phase in run["phases"]
            if phase["what"] == "nothing"
        ),
        default=0.0,
    )


def _section(run: Figures) -> list[str]:
    heading, note, promised_s = KINDS[run["kind"]]
    usual_s = _usual_lag_s(run)
    lines = [
        "",
        f"## {heading}",
        "",
        f"{run['streams']} streams. {note}",
        "",
        "| killed | captions: median, worst | finals: median, worst | latest final | beyond | ok |",
        "|---|---|---|---|---|---|",
    ]
    for phase in run["phases"]:
        captions, finals = phase["captions_s"], phase["finals_s"]
        lag_s = phase["final_lags_s"]["worst"]
        beyond_s = max(0.0, lag_s - usual_s)
        is_nothing = phase["what"] == "nothing"
        kept = "yes" if beyond_s <= promised_s else "**no**"
        lines.append(
            f"| {phase['what']} | {captions['median']:.1f} s, {captions['worst']:.1f} s "
            f"| {finals['median']:.1f} s, {finals['worst']:.1f} s | {lag_s:.1f} s "
            + ("| | |" if is_nothing else f"| {beyond_s:.1f} s | {kept} |")
        )
    lines += [
        "",
        "After all of it: " + ", ".join(f"{run[name]} {words}" for name, words in CLEAN) + ".",
    ]
    return lines
