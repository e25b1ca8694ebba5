"""How a load is shared among processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from transcription.runners.caption_load import SOCKETS_PER_PROCESS, LoadPlan, run_load


def plan(pcm: Path, **members: int) -> LoadPlan:
    values = {"clients": 1, "viewers": 0, **members}
    return LoadPlan(
        url="ws://127.0.0.1:9/ws/v1/stream",  # the discard port: nobody listens
        token="",
        pcm=pcm,
        language="",
        mode_ms=0,
        packet_ms=200,
        spread_s=0.0,
        captions_url="ws://127.0.0.1:9/captions",
        clients=values["clients"],
        viewers=values["viewers"],
    )


@pytest.mark.parametrize(
    ("sockets", "processes"), [(1, 1), (SOCKETS_PER_PROCESS, 1), (SOCKETS_PER_PROCESS + 1, 2)]
)
def test_a_process_has_so_many_sockets_at_most(
    sockets: int, processes: int, tmp_path: Path
) -> None:
    assert plan(tmp_path, clients=1, viewers=sockets - 1).processes == processes


def test_every_stream_and_reader_reports_though_nobody_answers(tmp_path: Path) -> None:
    pcm = tmp_path / "speech.pcm"
    pcm.write_bytes(bytes(3200))
    result = run_load(plan(pcm, clients=2, viewers=1))
    assert [report.session for report in result.streams] == ["", ""]
    assert all("cannot be reached" in report.problem for report in result.streams)
    assert ["was lost" in viewer.problem for viewer in result.viewers] == [True]
    assert result.cpu_s > 0
