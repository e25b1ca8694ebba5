"""The page of a real worker process, as Prometheus fetches it."""

from __future__ import annotations

import asyncio
import subprocess
import urllib.request
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from asr_engine import client
from asr_engine.backends.scripted import MODES_MS, encode_blocks
from asr_engine.protocol import EngineEventKind
from tests.asr_engine.worker.conftest import Servers, eventually
from webapp.setup import free_port


def fetch(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


async def test_a_worker_shows_its_measures_by_mode(
    servers: Servers,
    start_process: Callable[[str], subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    monkeypatch.setenv("ASR_METRICS_PORT", str(port))
    start_process("measured")

    async def beats() -> bool:
        return bool(await client.engine_statuses(servers.broker))

    await eventually(beats)
    await client.request_stream(servers.broker, session="s", language=None, mode_ms=80)
    await servers.speak("s", encode_blocks([*[None] * 10, 1, 2, 3, *[None] * 10]))
    await servers.wait_for("s", EngineEventKind.FINAL)
    page = await asyncio.to_thread(fetch, port)
    values: dict[tuple[str, str], float] = {
        (sample.name, sample.labels.get("mode_ms", "")): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if "le" not in sample.labels
    }
    for name in (
        "asr_step_seconds_count",
        "asr_batch_streams_count",
        "asr_ready_age_seconds_count",
        "asr_chunk_lag_seconds_count",
        "asr_first_partial_seconds_count",
        "asr_finalisation_delay_seconds_count",
    ):
        assert values[name, "80"] >= 1, name
        assert {mode for known, mode in values if known == name} == set(map(str, MODES_MS))
    assert (values["asr_streams", "80"], values["asr_streams", "560"]) == (1, 0)
    assert values["asr_slots", ""] - values["asr_free_slots", ""] == 1
    assert values["asr_failed_streams_total", ""] == 0
