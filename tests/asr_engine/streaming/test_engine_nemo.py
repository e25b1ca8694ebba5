"""The NeMo road through the whole engine: 32 streams at once say what each says alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asr_engine.audio import FloatSamples
from asr_engine.backends import silero
from asr_engine.backends.cache_aware.model import CacheAwareModel
from asr_engine.backends.cache_aware.nemo import RNNT, NemoNetwork
from asr_engine.config import engine_settings
from asr_engine.endpointing import EndpointRules
from asr_engine.events import StreamEvent
from asr_engine.ports import Capabilities, Chunk, VoiceActivityDetector
from asr_engine.streaming import Engine
from tests.fakes.digits import DIGITS_MODEL, Digits, digits, digits_model, padded, word_errors
from tests.fakes.engines import VirtualClock, finals_of, packets, run
from tests.fakes.nemo_pipeline import build_pipeline, give_back_lost_mel_frame, transcribe

STREAMS = 32
PACKETS_MS = (20, 100, 333)
STAGGER_MS = 50
FRAME = 1280
MODES_MS = [80, 160, 560, 1120]


class AlwaysSpeech:
    """A VoiceActivityDetector that ends no utterance."""

    window_samples = 512

    def open(self, stream: str) -> None:
        pass

    def detect(self, windows: Sequence[Chunk]) -> list[float]:
        return [1.0] * len(windows)

    def close(self, stream: str) -> None:
        pass


class WholeChunks(CacheAwareModel):
    """A model whose streams keep to their mode's chunk, as those of NeMo's pipeline do."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, mixes_chunks=False)


def engine_of(
    detector: VoiceActivityDetector, kind: type[CacheAwareModel] = CacheAwareModel
) -> Engine:
    network = NemoNetwork(digits_model(), decoder=RNNT, slots=STREAMS, batch_limit=STREAMS)
    # Recordings shorter than this are one utterance where the detector hears no pause.
    rules = EndpointRules(max_utterance_ms=60_000)
    return Engine(kind(network, name="digits"), detector, rules, VirtualClock())


def crowd() -> dict[str, Digits]:
    """32 streams of the shortest recordings, each several times."""
    items = sorted([*digits("seen"), *digits("heldout")], key=lambda item: item.word_times[-1])[:5]
    return {f"s{index}": items[index % len(items)] for index in range(STREAMS)}


def hear_crowd(
    engine: Engine, audio: Mapping[str, FloatSamples], modes_ms: Mapping[str, int]
) -> dict[str, str]:
    """Play all streams as they would come: each begins a little later and has packets of its own
    size. The final text of each."""
    arrivals = []
    for index, (stream, samples) in enumerate(audio.items()):
        size_ms = PACKETS_MS[index % len(PACKETS_MS)]
        for count, packet in enumerate(packets(samples, [size_ms * 16] * 2000), start=1):
            arrivals.append((index * STAGGER_MS + count * size_ms, stream, packet))
        arrivals.append((index * STAGGER_MS + count * size_ms + 1, stream, None))
    events: list[StreamEvent] = []
    for stream in audio:
        engine.open_stream(stream, mode_ms=modes_ms[stream])
    now_ms = 0
    for due_ms, stream, packet in sorted(arrivals, key=lambda item: item[:2]):
        if due_ms >= now_ms + 80:
            # A step now and then only, so that streams meet in one batch.
            events += run(engine)
            now_ms = due_ms
        if packet is None:
            engine.end_audio(stream)
        else:
            engine.accept_audio(stream, *packet)
    events += run(engine)
    for stream in audio:
        engine.close_stream(stream)
    return {stream: " ".join(final.text for final in finals_of(events, stream)) for stream in audio}


@pytest.mark.parametrize("mode_ms", MODES_MS)
def test_streams_together_say_what_nemos_pipeline_says_by_hand(mode_ms: int) -> None:
    engine = engine_of(AlwaysSpeech(), WholeChunks)
    audio = {stream: item.samples() for stream, item in crowd().items()}
    chunk = mode_ms * 16
    context = engine.capabilities.finish_context_ms * 16
    pipeline = give_back_lost_mel_frame(
        build_pipeline(
            DIGITS_MODEL,
            decoder=RNNT,
            att_context_size=[70, chunk // FRAME - 1],
            slots=STREAMS,
        )
    )
    by_hand = transcribe(
        pipeline,
        {
            index: padded(samples, chunk, silence=context)
            for index, samples in enumerate(audio.values())
        },
    )
    together = hear_crowd(engine, audio, dict.fromkeys(audio, mode_ms))
    assert list(together.values()) == list(by_hand.values())


@pytest.mark.models
@pytest.mark.parametrize("modes_ms", [[mode] for mode in MODES_MS] + [MODES_MS])
def test_streams_together_say_what_each_says_alone(modes_ms: list[int]) -> None:
    """As in service: voice activity finds the utterances, and the modes may differ."""
    engine = engine_of(silero.create(engine_settings()))
    audio = {stream: item.samples() for stream, item in crowd().items()}
    modes = {stream: modes_ms[index % len(modes_ms)] for index, stream in enumerate(audio)}
    together = hear_crowd(engine, audio, modes)
    alone: dict[tuple[str, int], str] = {}
    for stream, item in crowd().items():
        known = (item.path.name, modes[stream])
        if known not in alone:
            one = {stream: audio[stream]}
            alone[known] = hear_crowd(engine, one, modes)[stream]
        assert together[stream] == alone[known]
    errors = sum(word_errors(item, together[stream]) for stream, item in crowd().items())
    assert errors <= 0.15 * sum(len(item.word_times) for item in crowd().values())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 14 * FRAME - 1), st.sampled_from(MODES_MS))
def test_the_last_word_is_kept_wherever_the_audio_ends(rest: int, mode_ms: int) -> None:
    """For every remainder of the length modulo the chunk: audio that ends with its last word, and
    begins `rest` samples of room noise earlier."""
    item = min(digits("seen"), key=lambda item: item.word_times[-1])
    noise = np.random.default_rng(rest).normal(0, 0.002, rest).astype(np.float32)
    audio = {"s0": np.concatenate([noise, item.samples_to_last_word()])}
    said = hear_crowd(_small_engine(), audio, {"s0": mode_ms})["s0"]
    # Lost is what counts: how well the small model tells nine from one hangs on the noise.
    assert len(said.split()) == len(item.word_times) == 1, said


@cache
def _small_engine() -> Engine:
    network = NemoNetwork(digits_model(), decoder=RNNT, slots=1, batch_limit=1)
    return Engine(CacheAwareModel(network, name="digits"), AlwaysSpeech(), None, VirtualClock())
