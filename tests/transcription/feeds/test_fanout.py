"""Feeds and the one subscription: lasting events in order, the newest of the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asr_engine.protocol import ViewerEvent, captions_channel
from tests.fakes.live import publish, servers
from transcription.feeds import fanout
from transcription.feeds.fanout import CaptionEvent, Fanout, Feed


def event(kind: str, **members: Any) -> CaptionEvent:
    return CaptionEvent.parse(json.dumps({"type": kind, **members}).encode())


async def test_slow_viewer_gets_every_final_and_the_newest_partial() -> None:
    feed = Feed()
    for number in range(50):
        feed.offer(event("partial", utterance=1, text=f"p{number}"))
        feed.offer(event("ack", sample=number))
    feed.offer(event("final", utterance=0, seq=1))
    feed.offer(event("gap", seq=2))
    taken = await feed.take()
    assert [item.type for item in taken] == ["ack", "final", "gap", "partial"]
    assert taken[0].data["sample"] == 49
    assert taken[3].data["text"] == "p49"


async def test_slow_speaker_hears_what_is_on_disk_before_the_end() -> None:
    """Who has heard `closed` leaves; the last acknowledgement came before it and is not lost."""
    feed = Feed()
    feed.offer(event("ack", sample=480))
    feed.offer(event("closed", seq=3))
    assert [item.type for item in await feed.take()] == ["ack", "closed"]


async def test_partial_of_a_final_utterance_is_void() -> None:
    feed = Feed()
    feed.offer(event("partial", utterance=3, text="hel"))
    feed.offer(event("final", utterance=3, seq=4, text="hello"))
    assert [item.type for item in await feed.take()] == ["final"]


async def test_feed_that_nobody_takes_is_bounded() -> None:
    feed = Feed()
    for number in range(fanout.MAX_LASTING + 10):
        feed.offer(event("final", utterance=number, seq=number))
    assert feed.is_overflowing
    assert len(await feed.take()) == fanout.MAX_LASTING


async def test_each_feed_hears_its_session_alone() -> None:
    async with servers() as (broker, _):
        hub = Fanout(broker)
        feeds = {name: Feed() for name in ("a", "b")}
        for name, feed in feeds.items():
            await hub.subscribe(name, feed)
        await publish(ViewerEvent("state", "a", state="live"))
        await publish(ViewerEvent("state", "b", state="ended"))
        heard = {name: (await feed.take())[0].data["state"] for name, feed in feeds.items()}
        assert heard == {"a": "live", "b": "ended"}
        await hub.close()


async def test_subscription_survives_the_loss_of_its_connection(monkeypatch: Any) -> None:
    monkeypatch.setattr(fanout, "RETRY_S", 0.01)
    async with servers() as (broker, _):
        hub, feed = Fanout(broker), Feed()
        await hub.subscribe("a", feed)
        await broker.client_kill_filter(_type="pubsub")
        late = Feed()
        await hub.subscribe("b", late)  # confirmed on the new connection, as "a" was before it
        await publish(ViewerEvent("state", "a", state="live"))
        assert (await feed.take())[0].type == "state"
        await hub.close()


async def test_nothing_is_kept_of_a_socket_that_left_while_the_broker_was_away(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(fanout, "SUBSCRIBE_TIMEOUT_S", 0.0)
    async with servers() as (broker, _):
        hub = Fanout(broker)
        with pytest.raises(TimeoutError):
            await hub.subscribe("a", Feed())
        for feed in list(hub._feeds[captions_channel("a")]):
            await hub.unsubscribe("a", feed)
        monkeypatch.setattr(fanout, "SUBSCRIBE_TIMEOUT_S", 60.0)
        await hub.subscribe("b", Feed())
        assert set(hub._confirmed) == {captions_channel("b")}
        await hub.close()


async def test_last_feed_of_a_session_ends_its_subscription() -> None:
    async with servers() as (broker, _):
        hub, first, second = Fanout(broker), Feed(), Feed()
        await hub.subscribe("a", first)
        await hub.subscribe("a", second)
        await hub.unsubscribe("a", first)
        await publish(ViewerEvent("state", "a", state="live"))
        assert (await second.take())[0].type == "state"
        await hub.unsubscribe("a", second)
        await hub.unsubscribe("a", second)
        await hub.subscribe("a", first)
        await publish(ViewerEvent("state", "a", state="waiting"))
        assert (await first.take())[0].data["state"] == "waiting"
        await hub.close()
