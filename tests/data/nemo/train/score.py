"""Word error rates of a model, streamed through NeMo's own cache-aware pipeline.

    python -m tests.data.nemo.train.score MODEL.nemo MANIFEST.jsonl [--cut]

Every recording of the manifest is fed chunk by chunk in every latency mode to both decoders, with
0.3 s of silence behind it as a server feeds at the end of a stream. Prints one line a decoder, mode
and set: errors in percent of the words said, the share of last words that came out, and how far the
end that NeMo gives a word lies behind the true one on average, where every word was right. With
`--cut` a recording ends with its last word, so that only the fed silence is left to emit it in.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import soundfile
import torch

from tests.data.nemo.train.model import CONTEXTS, SUBSAMPLING
from tests.data.nemo.train.strings import SAMPLE_RATE
from tests.fakes.nemo_pipeline import build_pipeline, give_back_lost_mel_frame

FLUSH_S = 0.3
STREAMS = 32


@dataclass(frozen=True, slots=True)
class Reference:
    samples: torch.Tensor
    text: str
    group: str
    ends_s: tuple[float, ...]


def read_references(manifest: Path, *, is_cut: bool = False) -> list[Reference]:
    references = []
    for line in manifest.read_text().splitlines():
        entry = json.loads(line)
        samples, rate = soundfile.read(manifest.parent / entry["file"], dtype="float32")
        if rate != SAMPLE_RATE:
            raise ValueError(f"{entry['file']} has {rate} samples a second")
        ends_s = tuple(end for _, end in entry["word_times"])
        if is_cut:
            samples = samples[: round(ends_s[-1] * SAMPLE_RATE)]
        padded = np.pad(samples, (0, int(FLUSH_S * SAMPLE_RATE)))
        references.append(Reference(torch.from_numpy(padded), entry["text"], entry["set"], ends_s))
    return references


def make_pipeline(model: Path, decoder: str, context: Sequence[int]) -> Any:
    """NeMo's pipeline for a decoder ("rnnt" or "ctc") and a context, with endpoints off."""
    pipeline = build_pipeline(model, decoder=decoder, att_context_size=context, slots=STREAMS)
    return give_back_lost_mel_frame(pipeline)


def chunks(samples: torch.Tensor, stream: int, size: int) -> Iterator[Any]:
    """The samples as NeMo's frames of one size, the last one padded."""
    from nemo.collections.asr.inference.streaming.framing.request import Frame
    from nemo.collections.asr.inference.streaming.framing.request_options import ASRRequestOptions

    parts = samples.split(size)
    for number, part in enumerate(parts):
        yield Frame(
            samples=torch.nn.functional.pad(part, (0, size - len(part))),
            stream_id=stream,
            is_first=number == 0,
            is_last=number == len(parts) - 1,
            length=len(part),
            options=ASRRequestOptions() if number == 0 else None,
        )


@dataclass(slots=True)
class Heard:
    text: str = ""
    ends_s: tuple[float, ...] = ()


def hear(pipeline: Any, references: Sequence[Reference], size: int) -> list[Heard]:
    """What the pipeline makes of every recording, so many streams at a time."""
    heard = [Heard() for _ in references]
    for start in range(0, len(references), STREAMS):
        batch = range(start, min(start + STREAMS, len(references)))
        streams = [chunks(references[stream].samples, stream, size) for stream in batch]
        for step in itertools.zip_longest(*streams):
            for output in pipeline.transcribe_step([frame for frame in step if frame is not None]):
                result = heard[output.stream_id]
                result.text += output.final_transcript
                result.ends_s += tuple(segment.end for segment in output.final_segments)
    return heard


def report(
    model: Path, references: Sequence[Reference], decoder: str, context: Sequence[int]
) -> Iterator[str]:
    size = round((context[1] + 1) * SUBSAMPLING * 0.01 * SAMPLE_RATE)
    heard = hear(make_pipeline(model, decoder, context), references, size)
    for group in dict.fromkeys(reference.group for reference in references):
        pairs = [
            (reference, result)
            for reference, result in zip(references, heard, strict=True)
            if reference.group == group
        ]
        errors = jiwer.wer([r.text for r, _ in pairs], [h.text.strip() or "-" for _, h in pairs])
        lasts = [h.text.split()[-1:] == r.text.split()[-1:] for r, h in pairs]
        delays = [
            end_s - true_s
            for r, h in pairs
            if h.text.split() == r.text.split() and len(h.ends_s) == len(r.ends_s)
            for end_s, true_s in zip(h.ends_s, r.ends_s, strict=True)
        ]
        late = f"{np.mean(delays):+.2f} s" if delays else "-"
        mode = f"{decoder:5}{size * 1000 // SAMPLE_RATE:5} ms"
        yield f"{mode} {group:8} {errors:6.1%} {np.mean(lasts):6.0%}  {late}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Score a model on recordings.")
    parser.add_argument("model", type=Path)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--cut", action="store_true", help="end with the last word")
    options = parser.parse_args()
    torch.set_num_threads(1)
    references = read_references(options.manifest, is_cut=options.cut)
    for decoder, context in itertools.product(("rnnt", "ctc"), CONTEXTS):
        sys.stdout.writelines(report(options.model, references, decoder, context))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
