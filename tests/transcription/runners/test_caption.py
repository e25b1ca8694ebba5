"""The command-line microphone: what it counts, and what it keeps."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import soundfile

from asr_engine.backends import scripted
from asr_engine.errors import AudioError
from transcription.runners import caption
from transcription.runners.caption import (
    CaptionError,
    CaptionStream,
    PcmSource,
    StreamReport,
    open_source,
)


async def test_source_yields_every_sample_once_and_the_rest_last() -> None:
    data = bytes(range(200)) * 10 + b"\0"  # half a sample at the end
    source = PcmSource(io.BytesIO(data), is_live=False)
    packets = [packet async for packet in source.packets(300)]
    assert [len(packet) for packet in packets] == [600, 600, 600, 200]
    assert b"".join(packets) == data[:2000]


async def test_file_is_decoded_for_all_streams(tmp_path: Path) -> None:
    path = tmp_path / "speech.flac"
    samples = scripted.encode_blocks(scripted.script(4))
    soundfile.write(path, samples, 16000, subtype="PCM_16")
    with open_source(path) as source:
        for _ in range(2):
            packets = [packet async for packet in source.packets(1600)]
            assert sum(map(len, packets)) == 2 * len(samples)


def test_file_that_is_no_audio_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"
    path.write_text("no audio")
    with pytest.raises(AudioError), open_source(path):
        pass


def test_figures_are_those_of_all_streams() -> None:
    one = StreamReport(
        lags_s=[0.1, 0.2, 0.3, 0.4],
        final_s=[0.5],
        first_partial_s=[0.3],
        seqs={1, 2, 4},
        finals={0: "a"},
        sent_samples=32000,
        acknowledged_samples=16000,
        session="s",
    )
    other = StreamReport(problem="Full.")
    summary = caption.summarise([one, other])
    assert summary["lag_s"] == {"p50": 0.3, "p95": 0.4}
    assert summary["drift_s"] == 0.3
    assert summary["lost_events"] == 1
    assert summary["unacknowledged_ms"] == 1000
    assert summary["refused"] == ["Full."]
    json.dumps(summary)


def test_stream_without_events_has_no_figures() -> None:
    summary = caption.summarise([StreamReport()])
    assert summary["lag_s"] == {"p50": None, "p95": None}
    assert summary["drift_s"] is None


def test_refusal_that_may_pass_is_tried_again_once_a_session_runs() -> None:
    stream = CaptionStream("ws://localhost/ws/v1/stream", "token")
    with pytest.raises(CaptionError):
        stream._refused({"code": "no_engine", "reason": "No engine."})
    stream.report.session = "session"
    stream._refused({"code": "no_engine", "reason": "No engine."})
    with pytest.raises(CaptionError):
        stream._refused({"code": "not_found", "reason": "Nothing here."})
