"""The figures of the load generator, on arrivals that are known."""

from __future__ import annotations

import json
from typing import Any

from transcription.runners.caption_report import (
    Arrivals,
    Heard,
    StreamReport,
    ViewerReport,
    by_minute,
    endpoint_ms,
    summarise,
    words_off,
)


def final(utterance: int, text: str, seq: int) -> dict[str, Any]:
    return {"type": "final", "utterance": utterance, "text": text, "seq": seq, "end_ms": 1000}


def speaking(*sent_at_s: float, packet_samples: int = 3200) -> StreamReport:
    return StreamReport(session="s", sent_at_s=list(sent_at_s), packet_samples=packet_samples)


def test_figures_are_those_of_all_streams() -> None:
    one = StreamReport(
        heard=Heard(seqs={1, 2, 4}, finals={0: "a"}),
        lags_s=[0.1, 0.2, 0.3, 0.4],
        final_s=[0.5],
        first_partial_s=[0.3],
        sent_samples=32000,
        acknowledged_samples=16000,
        session="s",
    )
    other = StreamReport(problem="Full.", problem_code="no_free_slot")
    summary = summarise([one, other])
    assert summary["lag_s"] == {"p50": 0.3, "p95": 0.4}
    assert summary["drift_s"] == 0.3
    assert summary["lost_events"] == 1
    assert summary["unacknowledged_ms"] == 1000
    assert summary["refused"] == ["Full."]
    assert summary["refusals"] == {"no_free_slot": 1}
    json.dumps(summary)


def test_stream_without_events_has_no_figures() -> None:
    summary = summarise([StreamReport()])
    assert summary["lag_s"] == {"p50": None, "p95": None}
    assert summary["drift_s"] is None
    assert summary["added_delay_s"]["p95"] is None


def test_added_delay_counts_from_the_packet_that_completed_what_was_heard() -> None:
    """160 ms of audio are complete with the first packet of 200 ms, 320 ms with the second."""
    stream = speaking(10.0, 10.2)
    stream.heard.partials = Arrivals([10.03, 10.25], [160, 320])
    added = summarise([stream])["added_delay_s"]
    assert (added["p50"], added["p95"], added["events"]) == (0.05, 0.05, 2)


def test_readers_are_measured_against_the_packets_of_the_first_stream() -> None:
    stream = speaking(10.0, 10.2)
    stream.heard.finals = {0: "w0", 1: "w1"}
    reader = ViewerReport(heard=Heard(partials=Arrivals([10.04], [200]), finals={0: "w0"}))
    refused = ViewerReport(problem="Too many.", problem_code="too_many_viewers")
    viewers = summarise([stream], [reader, refused])["viewers"]
    assert viewers["added_delay_s"]["p50"] == 0.04
    assert viewers["lost_finals"] == 1
    assert viewers["refusals"] == {"too_many_viewers": 1}


def test_drift_is_that_of_the_last_minute_against_the_first() -> None:
    delays = [(float(second), 0.01 if second < 60 else 0.04) for second in range(180)]
    figures = by_minute(delays)
    assert figures["drift_s"] == 0.03
    assert [minute["p50"] for minute in figures["minutes"]] == [0.01, 0.04, 0.04]


def test_minute_that_has_hardly_begun_counts_with_the_one_before() -> None:
    delays = [(float(second), 0.01) for second in range(120)] + [(120.5, 9.0)]
    figures = by_minute(delays)
    assert len(figures["minutes"]) == 2
    assert figures["drift_s"] == 0.0


def test_final_that_comes_again_with_another_text_is_a_doubling() -> None:
    heard = Heard()
    for text in ("a", "a", "b"):
        heard.keep(final(0, text, seq=1))
    assert heard.doubled == 1


def refined(utterance: int, text: str, seq: int) -> dict[str, Any]:
    return {**final(utterance, text, seq), "type": "refined"}


def test_refined_text_is_told_apart_from_the_live_pass() -> None:
    stream = speaking()
    stream.heard.note_final(final(0, "one", 1), 10.0)
    stream.heard.keep(final(0, "one", 1))
    stream.heard.note_refined(refined(0, "won", 2), 13.5)
    stream.heard.keep(refined(0, "won", 2))
    summary = summarise([stream], expected="one")
    assert (summary["finals"], summary["refined"]) == (1, 1)
    assert summary["final_to_refined_s"]["p50"] == 3.5
    assert summary["text"]["right"] == 1
    assert (summary["lost_events"], summary["doubled_events"]) == (0, 0)


def test_a_final_that_was_refined_before_it_could_be_read_is_not_lost() -> None:
    heard = Heard()
    for event in (final(0, "one", 1), refined(1, "too", 3), final(1, "two", 2)):
        heard.keep(event)
    assert (heard.missed_seqs(), heard.doubled) == (0, 0)
    assert heard.text == "one too"


def test_words_lost_and_doubled_are_counted_apart() -> None:
    assert words_off("w1 w2 w2 w9", "w1 w2 w3") == (1, 2)
    stream = StreamReport(session="s", heard=Heard(finals={0: "w0", 1: "w1"}))
    right = StreamReport(session="t", heard=Heard(finals={0: "w0 w1 w2"}))
    text = summarise([stream, right], expected="w0 w1 w2")["text"]
    assert text == {"right": 1, "wrong": 1, "words_lost": 1, "words_doubled": 0}


def test_endpoint_falls_on_whole_windows_of_voice_activity() -> None:
    assert endpoint_ms(1000) == 1024 + 608
