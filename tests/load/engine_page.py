"""The Markdown of docs/benchmarks-engine.md, of the results of `bench_engine`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Result = dict[str, Any]


def page(runs: Sequence[Sequence[Result]]) -> str:
    """One section for each run; a run is what one machine measured."""
    lines = [
        "# Benchmarks of the streaming engine",
        "",
        "Written by `make bench-engine`; do not edit. All models hear English talk, over and over.",
        "`digits` is the small trained model of the tests; the others have the shape of large",
        "FastConformer models and random weights (`tests/load/nemo_shapes.py`), set to emit about",
        "as many tokens as speech has: their speed is what such a model's would be, their text",
        "means nothing.",
    ]
    for run in runs:
        lines += _section(run)
    if not any(_only(run, "machine")[0]["gpu"] for run in runs):
        lines += [
            "",
            "## GPU",
            "",
            "Not measured: no GPU was at hand. On a machine with one, this finds how many streams",
            "it carries in real time (560 at a chunk of 320 ms on an H100 is the published figure",
            "for the 0.6 B model) and the delay of finals (24 ms):",
            "",
            "    python -m tests.load.bench_engine --device cuda --dtype bfloat16 --shapes 0.6B \\",
            "        --modes 80 160 320 560 1120 --parts capacity finals pairs steps \\",
            "        --batch-limit 1024 --final-streams 1 64 256 --lines gpu.jsonl",
        ]
    return "\n".join(lines) + "\n"


def _section(run: Sequence[Result]) -> list[str]:
    about = _only(run, "machine")[0]
    ends = _only(run, "end")
    after = f", {ends[0]['load']} after" if ends else ""
    unit = "wall time" if about["gpu"] else "CPU time of one thread"
    lines = [
        "",
        f"## {about['gpu'] or 'CPU, one thread'}, {about['dtype']}",
        "",
        f"- Machine: {about['machine']}; load average {about['load']} before{after}",
        f"- When: {about['when']}",
        f"- Python {about['python']}, torch {about['torch']}, NeMo {about['nemo']}",
    ]
    lines += [
        f"- Model `{model['model']}`: {model['million']} M weights" for model in _only(run, "model")
    ]
    lines += [f"- {note['text']}" for note in _only(run, "note")]
    for heading, part in (
        (f"The engine beside NeMo's own pipeline ({unit})", _pairs(run)),
        ("Live streams at once", _capacity(run)),
        ("Live streams without voice activity", _ceiling(run)),
        ("From the endpoint to the final", _finals(run)),
        ("The same for utterances of each length", _lengths(run)),
        ("From speech to what is shown", _delays(run)),
        (f"One step of the network ({unit})", _steps(run)),
        ("Exported for ONNX Runtime: a step of 160 ms (CPU time of one thread)", _onnx_costs(run)),
        ("Exported for ONNX Runtime: spoken digits", _onnx_accuracy(run)),
        ("Hours", _soak(run)),
    ):
        if part:
            lines += ["", f"### {heading}", "", *part]
    return lines


def _pairs(run: Sequence[Result]) -> list[str]:
    pairs = _only(run, "pair")
    if not pairs:
        return []
    return [
        "Seconds of audio heard in a second of work, every stream one chunk a round, the roads",
        "taking turns in one process on the same weights. The engine decides endpoints and makes",
        "words beside; NeMo's endpointing is off. The ratio is the median over the turns of",
        "the road's throughput / that of NeMo's pipeline.",
        "",
        *_table(
            ("model", "mode ms", "streams", "road", "audio s", "NeMo's audio s", "ratio"),
            [
                [
                    pair[key]
                    for key in (
                        *("model", "mode_ms", "streams", "road"),
                        *("audio_s", "their_audio_s", "ratio"),
                    )
                ]
                for pair in pairs
            ],
        ),
    ]


def _capacity(run: Sequence[Result]) -> list[str]:
    rows = _most_streams(run, "capacity")
    if not rows:
        return []
    return [
        "The most streams that were found to keep up: a round, in which every stream hears one",
        "chunk through the whole engine (Silero on one CPU thread, endpoints, words), took at the",
        "95th percentile at most 0.9 of the chunk's duration.",
        "",
        *rows,
    ]


def _ceiling(run: Sequence[Result]) -> list[str]:
    rows = _most_streams(run, "ceiling")
    if not rows:
        return []
    return [
        "The same with a detector that hears speech always and costs nothing: what the network and",
        "the engine would carry if voice activity were free.",
        "",
        *rows,
    ]


def _most_streams(run: Sequence[Result], kind: str) -> list[str]:
    best: dict[tuple[str, int], Result] = {}
    for result in _only(run, kind):
        key = (result["model"], result["mode_ms"])
        if result["is_in_time"] and (key not in best or best[key]["streams"] < result["streams"]):
            best[key] = result
    if not best:
        return []
    keys = ("model", "mode_ms", "streams", "round_ms", "round_p95_ms", "memory_mib")
    return _table(
        ("model", "mode ms", "streams", "round ms", "p95 ms", "memory MiB"),
        [[result[key] for key in keys] for result in best.values()],
    )


def _finals(run: Sequence[Result]) -> list[str]:
    keys = ("model", "mode_ms", "streams", "finals", "p50_ms", "p95_ms")
    finals = _only(run, "final")
    if not finals:
        return []
    return [
        "From the engine's decision that an utterance ended to its Final event, all streams",
        "speaking at once and without rest.",
        "",
        *_table(
            ("model", "mode ms", "streams", "finals", "p50 ms", "p95 ms"),
            [[result[key] for key in keys] for result in finals],
        ),
    ]


def _lengths(run: Sequence[Result]) -> list[str]:
    keys = ("model", "mode_ms", "seconds", "p50_ms", "longest_ms")
    rows = _only(run, "length")
    if not rows:
        return []
    return [
        "One stream, four utterances of each length, the rule that cuts long ones switched off.",
        "",
        *_table(
            ("model", "mode ms", "utterance s", "p50 ms", "longest ms"),
            [[row[key] for key in keys] for row in rows],
        ),
    ]


def _delays(run: Sequence[Result]) -> list[str]:
    keys = ("mode_ms", "recordings", "first_p50_ms", "first_p95_ms", "final_p50_ms", "final_p95_ms")
    rows = _only(run, "delay")
    if not rows:
        return []
    return [
        "One stream of spoken digits, without sockets and broker: from the beginning of the first",
        "word's take to the first partial, and from the end of the last one's to the final, the",
        "rule of 600 ms of silence in it. A take begins and ends with some silence of its own.",
        "",
        *_table(
            ("mode ms", "recordings", "first p50 ms", "p95 ms", "final p50 ms", "p95 ms"),
            [[row[key] for key in keys] for row in rows],
        ),
    ]


def _steps(run: Sequence[Result]) -> list[str]:
    keys = ("model", "mode_ms", "batch", "step_ms", "streams", "tokens_per_frame")
    steps = _only(run, "step")
    if not steps:
        return []
    return [
        "Streams: how many this batch would carry in real time if nothing else took time.",
        "",
        *_table(
            ("model", "mode ms", "batch", "step ms", "streams", "tokens a frame"),
            [[result[key] for key in keys] for result in steps],
        ),
    ]


def _onnx_costs(run: Sequence[Result]) -> list[str]:
    rows = _only(run, "onnx_cost")
    if not rows:
        return []
    names = list(rows[0]["cpu_ms"])
    return [
        "Milliseconds, mel frames and decoder included; the networks take turns at each step.",
        "",
        *_table(
            ("model", "decoder", "batch", *names),
            [[row["model"], row["decoder"], row["batch"], *row["cpu_ms"].values()] for row in rows],
        ),
    ]


def _onnx_accuracy(run: Sequence[Result]) -> list[str]:
    rows = _only(run, "onnx_wer")
    if not rows:
        return []
    names = list(rows[0]["wer"])
    return [
        f"Word error rate in percent over {rows[0]['recordings']} recordings, each followed by",
        "silence; in brackets, how many of them are heard as by torch, token for token and frame",
        "for frame.",
        "",
        *_table(
            ("decoder", "mode ms", *names),
            [
                [
                    row["decoder"],
                    row["mode_ms"],
                    *(f"{row['wer'][name]:.1%} ({row['as_torch'][name]})" for name in names),
                ]
                for row in rows
            ],
        ),
    ]


def _soak(run: Sequence[Result]) -> list[str]:
    parts, abandoned = _only(run, "soak"), _only(run, "abandoned")
    lines = []
    if parts:
        keys = ("minute", "cpu_s_per_audio_s", "memory_mib", "finals")
        lines += [
            f"One stream of `{parts[0]['model']}` without a break, {parts[0]['mode_ms']} ms mode;",
            "CPU seconds for a second of audio over the five minutes before.",
            "",
            *_table(
                ("minute", "CPU s a second", "memory MiB", "finals"),
                [[result[key] for key in keys] for result in parts],
            ),
        ]
    if abandoned:
        lines += [
            "",
            "Streams opened, spoken to for a second and abandoned:",
            "",
            *_table(
                ("streams so far", "memory MiB"),
                [[result["streams"], result["memory_mib"]] for result in abandoned],
            ),
        ]
    return lines


def _only(run: Sequence[Result], kind: str) -> list[Result]:
    return [result for result in run if result["kind"] == kind]


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        "|" + "---|" * len(heads),
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]
