"""Other transcribers of recordings beside ours: the same weights, recordings and threads.

    python -m tests.load.batch_peers MANIFEST [--peers ours faster-whisper faster-whisper-beam-5
        whisperx openai-whisper] [--folder F] [--limit N] [--threads 2] [--quality A]

whisperx and openai-whisper are installed into a virtual environment in a temporary folder, by pip,
and are no requirements of this project. Of whisperx runs what needs nothing from the network: its
batched decoding behind Silero's voice activity, without the alignment models that time its words.
openai-whisper computes in float32 from the same float16 weights; the others in int8.

One JSON line for each peer and folder: error by the rules of `manage.py evaluate`, seconds of CPU
and of wall time per minute of audio; loading does not count. A peer that does not install, or
fails, says so instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from asr_engine.config import engine_settings
from asr_engine.evaluation import Entry, FileScore, report
from tests.e2e.conftest import ROOT
from tests.load.machine import load, machine
from transcription.runners.evaluate import Selection, spoken_language

PEERS: Final = ("ours", "faster-whisper", "faster-whisper-beam-5", "whisperx", "openai-whisper")
PACKAGES: Final = {
    "whisperx": (
        ["whisperx==3.8.6", "pyannote.core==6.1.0"],
        ["pandas", "nltk", "sortedcontainers"],
    ),
    "openai-whisper": (["openai-whisper==20250625"], ["tiktoken", "more-itertools", "numba"]),
}
"""Without what they need in turn, and what they do need that this project has not."""

_LOOP: Final = """
import json, sys, time
request = json.load(sys.stdin)
model_dir, threads = request["model_dir"], request["threads"]
__LOAD__
from faster_whisper.audio import decode_audio
for path, language in request["files"]:
    wall, cpu = time.perf_counter(), time.process_time()
    text, seconds = hear(path, language)
    spent = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    print(json.dumps({"path": path, "text": text, "audio_s": seconds, **spent}), flush=True)
"""
_OURS: Final = """
from pathlib import Path
sys.path.insert(0, request["root"])
from asr_engine import registry
from asr_engine.batch import two_pass
from asr_engine.config import engine_settings
settings = engine_settings().model_copy(update={"threads": threads})
model, finder = registry.batch_model(settings), registry.speech_finder(settings)
def hear(path, language):
    options = two_pass.TwoPassOptions(language=language)
    texts, audio_ms = [], 0
    for group in two_pass.transcribe(Path(path), model=model, finder=finder, options=options):
        audio_ms = group.audio_total_ms
        if group.pass_ is two_pass.Pass.REFINED:
            texts += [segment.text for segment in group.segments]
    return " ".join(texts), audio_ms / 1000
"""
_BARE: Final = """
from faster_whisper import BatchedInferencePipeline, WhisperModel
whisper = WhisperModel(model_dir, device="cpu", compute_type="int8", cpu_threads=threads)
pipeline = BatchedInferencePipeline(whisper)
def hear(path, language):
    segments, about = pipeline.transcribe(
        path, language=language, batch_size=8, beam_size=__BEAM__, temperature=0.0,
        word_timestamps=True, condition_on_previous_text=False,
    )
    return " ".join(segment.text.strip() for segment in segments), about.duration
"""
_WHISPERX: Final = """
import types
import pyannote.core
def stand_in(name, **members):  # for what its other voice activity needs
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
stand_in("whisperx.vads.pyannote", Pyannote=object)
stand_in("pyannote.audio", Pipeline=object)
import silero_vad
import torch
torch.set_num_threads(threads)
torch.hub.load = lambda *_, **__: (  # else from the network
    silero_vad.load_silero_vad(), (silero_vad.get_speech_timestamps, None, None, None, None)
)
from whisperx.asr import load_model
whisper = load_model(
    model_dir, "cpu", compute_type="int8", vad_method="silero", threads=threads,
    language=request["language"],
)
def hear(path, language):
    samples = decode_audio(path)
    heard = whisper.transcribe(samples, batch_size=8, language=language)
    return " ".join(segment["text"].strip() for segment in heard["segments"]), len(samples) / 16000
"""
_OPENAI: Final = """
import warnings
from pathlib import Path
import torch
sys.path.insert(0, request["root"])
from tests.load.whisper_weights import checkpoint, read_tensors
torch.set_num_threads(threads)
warnings.simplefilter("ignore")
import whisper as openai_whisper
from whisper.model import ModelDimensions, Whisper
stored = checkpoint(read_tensors(Path(model_dir) / "model.bin"))
whisper = Whisper(ModelDimensions(**stored["dims"]))
weights = stored["model_state_dict"].items()
whisper.load_state_dict({name: torch.tensor(data).float() for name, data in weights}, strict=False)
whisper.eval()
def hear(path, language):
    samples = decode_audio(path)
    heard = openai_whisper.transcribe(
        whisper, samples, language=language, fp16=False, word_timestamps=True,
        condition_on_previous_text=False,
    )
    return heard["text"].strip(), len(samples) / 16000
"""
PROGRAMS: Final = {
    "ours": _OURS,
    "faster-whisper": _BARE.replace("__BEAM__", "1"),
    "faster-whisper-beam-5": _BARE.replace("__BEAM__", "5"),
    "whisperx": _WHISPERX,
    "openai-whisper": _OPENAI,
}


def install(peer: str, folder: Path) -> Path | None:
    """A Python that has the peer and everything of ours; None where pip finds no way."""
    if peer not in PACKAGES:
        return Path(sys.executable)
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    theirs = next(folder.glob("lib/python*/site-packages"))
    (theirs / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-warn-conflicts"]
    alone, whole = PACKAGES[peer]
    for packages in (["--no-deps", *alone], whole):
        if subprocess.run([*pip, *packages], check=False).returncode:
            return None
    return python


def hear(
    peer: str, python: Path, entries: Sequence[Entry], language: str | None, threads: int
) -> Iterator[tuple[FileScore, float]]:
    """Each entry's score with the CPU seconds that it took. Raises CalledProcessError."""
    settings = engine_settings()
    request = {
        "model_dir": str(settings.model_dir / settings.batch_model),
        "threads": threads,
        "root": str(ROOT),
        "language": language,
        "files": [(str(entry.path), spoken_language(entry)) for entry in entries],
    }
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", _LOOP.replace("__LOAD__", PROGRAMS[peer])],
        input=json.dumps(request),
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for entry, line in zip(entries, lines, strict=True):
        score = FileScore(entry, line["text"], line["audio_s"], line["wall_s"])
        yield score, line["cpu_s"]


def measure(peer: str, entries: Sequence[Entry], folder: Path, threads: int) -> Iterator[Any]:
    """One line for each folder of the manifest and language."""
    python = install(peer, folder / peer)
    if python is None:
        yield {"peer": peer, "problem": "does not install"}
        return
    groups: dict[tuple[str, str | None], list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.folder, spoken_language(entry)].append(entry)
    for (name, language), group in groups.items():
        facts = {"peer": peer, "folder": name, "language": language, "recordings": len(group)}
        try:
            heard = list(hear(peer, python, group, language, threads))
        except subprocess.CalledProcessError:
            yield facts | {"problem": "ended with an error"}
            continue
        summary = report([score for score, _ in heard])
        minutes = sum(score.audio_s for score, _ in heard) / 60
        yield facts | {
            "wer": summary["wer"],
            "cer": summary["cer"],
            "minutes": round(minutes, 2),
            "cpu_s_per_minute": round(sum(cpu_s for _, cpu_s in heard) / minutes, 2),
            "wall_s_per_minute": round(sum(score.work_s for score, _ in heard) / minutes, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--folder", nargs="*", default=[""], help="folders of the manifest")
    parser.add_argument("--quality", default="A")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    entries = [
        entry
        for folder in options.folder
        for entry in Selection(folder=folder, quality=options.quality, limit=options.limit).entries(
            options.manifest
        )
    ]
    sys.stdout.write(json.dumps({"machine": machine(), "load": load()}) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        for peer in options.peers:
            for line in measure(peer, entries, Path(folder), options.threads):
                sys.stdout.write(json.dumps(line) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
