"""docs/benchmarks-batch.md from what the commands that measure recordings printed.

python -m tests.load.bench_batch --manifest M >batch.json
python -m tests.load.batch_peers M >peers.jsonl
python -m tests.load.bench_calls M >calls.jsonl
python -m tests.load.long_recordings >hours.jsonl
python -m tests.accuracy.nothing_said >nothing.jsonl
python -m tests.load.batch_page --batch batch.json --peers peers.jsonl --calls calls.jsonl
    --hours hours.jsonl --nothing nothing.jsonl

A section without new lines stays as it was written, with its day.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from tests.e2e.conftest import ROOT
from tests.load.machine import machine

PAGE: Final = ROOT / "docs" / "benchmarks-batch.md"
BOTH: Final = "Both passes, by kind of recording"
TITLES: Final = {
    BOTH: "batch",
    "Beside others": "peers",
    "Calls": "calls",
    "Hours": "hours",
    "Nothing said": "nothing",
}
"""The sections in order, and the option that brings a section's lines."""
WORDS: Final = {
    "silent": "digital silence",
    "spoken": "coded words, scripted model",
    "real": "speech",
}


def page(sections: Mapping[str, Sequence[str]], before: str) -> str:
    """The whole page: each of TITLES as in `sections` (its lines without the heading), else as it
    stands in `before`."""
    stood = {
        title: body.strip().splitlines()
        for part in before.split("\n## ")[1:]
        for title, _, body in [part.partition("\n")]
    }
    lines = [
        "# Recordings",
        "",
        "Written by `python -m tests.load.batch_page`, which says how; do not edit. Seconds",
        "are CPU seconds of all threads per minute of audio; they belong to the machine.",
    ]
    for title in TITLES:
        if body := sections.get(title) or stood.get(title):
            lines += ["", f"## {title}", "", *body]
    return "\n".join([*lines, ""])


def _measured(lines: Iterable[str]) -> list[str]:
    """A section's lines, with the day and the machine."""
    return [f"{datetime.now(UTC):%Y-%m-%d}, {machine()}.", "", *lines]


def _folders(batch: dict[str, Any]) -> Iterator[str]:
    yield from (
        (
            f"{batch['model']}, {batch['compute_type']} on {batch['device']}, {batch['threads']} "
            f"threads; faster-whisper {version('faster-whisper')}, CTranslate2 "
            f"{version('ctranslate2')}."
        ),
        "",
        "Ours beside bare faster-whisper (batched, 8 windows) on the same weights, in the same",
        f"process, in turns ({batch['rounds']} of each). Error is WER by the Whisper English",
        "normaliser, CER for Chinese. Draft against greedy decoding, refined against a beam of 5",
        "everywhere; the refine pass's seconds come on top of the draft's.",
        "",
        (
            "| recordings | minutes | draft s | greedy s | draft / greedy | refine on top s | "
            "both / greedy | beam 5 s | draft % | greedy % | refined % | beam 5 % |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    )
    for name, folder in batch["folders"].items():
        cpu = folder["cpu_s_per_minute"]
        for metric in ("wer", "cer"):
            if metric not in folder:
                continue
            both = (cpu["draft"] + cpu["refined"]) / cpu["theirs"]
            rate = {of: f"{100 * value:.2f}" for of, value in folder[metric].items()}
            yield (
                f"| {name} ({folder['files']}, {metric.upper()}) | {folder['audio_s'] / 60:.1f} | "
                f"{cpu['draft']} | {cpu['theirs']} | {folder['draft_ratio']:.2f} | "
                f"{cpu['refined']} | {both:.2f} | {cpu['beam']} | "
                f"{rate['draft']} | {rate['theirs']} | {rate['refined']} | {rate['beam']} |"
            )


def _peers(peers: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from (
        "The same weights and threads, each in a process of its own. whisperx without its",
        "alignment models, so without times of words; openai-whisper in float32, the others in",
        "int8.",
        "",
        "| | recordings | minutes | error % | CPU s per minute | wall s per minute |",
        "|---|---|---|---|---|---|",
    )
    for line in peers:
        if "peer" not in line:
            continue
        recordings = f"{line['folder']}, {line['language'] or 'any'}" if "folder" in line else ""
        name = f"| {line['peer']} | {recordings} | "
        if "problem" in line:
            yield f"{name}{line['problem']} | | | |"
            continue
        error = line["wer"] if line["wer"] is not None else line["cer"]
        yield (
            f"{name}{line['minutes']:.1f} | {100 * error:.2f} | {line['cpu_s_per_minute']} | "
            f"{line['wall_s_per_minute']} |"
        )


def _calls(calls: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from (
        "Calls of recordings by turns, over a telephone (8 kHz, mu-law): words that are wrong, or",
        "on the wrong side, where each channel is heard on its own; wrong words in a mix of both",
        "channels, and in the recordings by themselves.",
        "",
        "| recordings | overlap s | leak dB | by speaker % | mixed % | alone % |",
        "|---|---|---|---|---|---|",
    )
    for line in calls:
        rate = {name: f"{100 * of['rate']:.1f}" for name, of in line["rates"].items()}
        yield (
            f"| {line['folder']} | {line['overlap_s']} | -{line['leak_db']:g} | "
            f"{rate['by speaker']} | {rate['mixed']} | {rate['recordings alone']} |"
        )


def _hours(hours: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from (
        "Memory is the most that the process held: after loading, after the first group, in all.",
        "",
        (
            "| | hours of audio | file MiB | seconds | memory MiB | words | progress only rose, to "
            "the end | stopped after a cancel s |"
        ),
        "|---|---|---|---|---|---|---|---|",
    )
    for line in hours:
        words = f"{line['words']}"
        if "expected" in line:
            words += f" of {line['expected']}, {'in order' if line['is_in_order'] else 'mixed up'}"
        is_true = line["progress_rises"] and line["progress_reached_the_end"]
        yield (
            f"| {WORDS[line['part']]} | {line['audio_hours']} | {line['file_mib']} | "
            f"{line['seconds']} | {line['loaded_mib']:.0f}, {line['after_first_group_mib']:.0f}, "
            f"{line['peak_mib']:.0f} | {words} | {'yes' if is_true else 'no'} | "
            f"{line.get('cancelled_after_s', '')} |"
        )


def _nothing(nothing: Sequence[dict[str, Any]]) -> Iterator[str]:
    *clips, summary = nothing
    yield from (
        "Generated silence, hum, noise, breath, beeps, clicks, chords and melodies, and recordings",
        (
            f"in which nobody speaks: {summary['clips']} clips, text in {summary['with_text']}, "
            f"“not understood” in {summary['marked_unclear']}."
        ),
    )
    for clip in clips:
        yield f"- `{clip['clip']}`: “{clip['text']}”"


WRITERS: Final = {
    "Beside others": _peers,
    "Calls": _calls,
    "Hours": _hours,
    "Nothing said": _nothing,
}


def _lines(path: Path | None) -> list[dict[str, Any]]:
    if path is None:
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for title, name in TITLES.items():
        parser.add_argument(f"--{name}", type=Path, help=title)
    options = parser.parse_args()
    sections = {}
    if options.batch:
        sections[BOTH] = _measured(_folders(json.loads(options.batch.read_text())))
    for title, write in WRITERS.items():
        if lines := _lines(getattr(options, TITLES[title])):
            sections[title] = _measured(write(lines))
    PAGE.write_text(page(sections, PAGE.read_text()))


if __name__ == "__main__":
    main()
