"""The law of the StreamingModel port. Every backend is held to it by the same tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import jiwer
import numpy as np
import pytest

from asr_engine.audio import SAMPLE_RATE, FloatSamples, samples_to_ms
from asr_engine.backends.cache_aware.model import CacheAwareModel
from asr_engine.backends.cache_aware.nemo import CTC, RNNT, NemoNetwork
from asr_engine.backends.cache_aware.onnx import OnnxNetwork
from asr_engine.backends.scripted import ScriptedModel, encode_blocks, script_text
from asr_engine.config import engine_settings
from asr_engine.errors import NoFreeSlotError, UnknownStreamError, UnsupportedModeError
from asr_engine.evaluation import count_errors
from asr_engine.ports import Chunk, Hypothesis, StreamingModel
from asr_engine.registry import streaming_model
from asr_engine.results import join_words
from tests.fakes.digits import digits, digits_model
from tests.fakes.exported_digits import exported_digits
from tests.fakes.speech import ACCOUNT, SILLY, silence


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend under test.

    `utterances` gives the audio of two utterances as the engine cuts them (pre-roll, speech, the
    silence that follows); `texts` what they say, and `is_same` whether a text says the same.
    """

    create: Callable[[], StreamingModel]
    utterances: Callable[[], tuple[FloatSamples, FloatSamples]]
    texts: tuple[str, str]
    is_same: Callable[[str, str], bool] = str.__eq__
    language: str | None = "en"


_SILENCE: list[int | None] = [None, None, None]
_BLOCKS = (
    [*_SILENCE, *range(11, 21), *_SILENCE],
    [*_SILENCE, 7, 7, 7, *range(300, 312), *_SILENCE],
)


def _scripted_utterances() -> tuple[FloatSamples, FloatSamples]:
    return encode_blocks(_BLOCKS[0]), encode_blocks(_BLOCKS[1])


def _scripted(*, is_gated: bool) -> Backend:
    return Backend(
        create=lambda: ScriptedModel(slots=3, is_gated=is_gated),
        utterances=_scripted_utterances,
        texts=(script_text(_BLOCKS[0]), script_text(_BLOCKS[1])),
    )


def _whisper_utterances() -> tuple[FloatSamples, FloatSamples]:
    room = silence(0.3)
    return (
        np.concatenate((room, SILLY.samples(), room)),
        np.concatenate((room, ACCOUNT.samples(), room)),
    )


def _is_same_english(said: str, expected: str) -> bool:
    """A real model may mishear one word of a sentence, but neither lose nor double any."""
    count = count_errors(expected, said, "en")
    return count.substitutions <= count.units // 8 and not count.insertions + count.deletions


def _digits_utterances() -> tuple[FloatSamples, FloatSamples]:
    first, second = _DIGITS
    return first.samples(), second.samples()


def _nemo(decoder: str) -> Backend:
    def create() -> StreamingModel:
        network = NemoNetwork(digits_model(), decoder=decoder, slots=3, batch_limit=3)
        return CacheAwareModel(network, name="digits")

    return Backend(
        create=create,
        utterances=_digits_utterances,
        texts=(_DIGITS[0].text, _DIGITS[1].text),
        is_same=_is_same_digits,
    )


def _is_same_digits(said: str, expected: str) -> bool:
    """The small model may mishear one word, but neither lose nor double any."""
    counts = jiwer.process_words(expected, said)
    return counts.substitutions <= 1 and not counts.insertions + counts.deletions


def _onnx(decoder: str) -> Backend:
    def create() -> StreamingModel:
        network = OnnxNetwork(exported_digits(decoder), slots=3, batch_limit=3)
        return CacheAwareModel(network, name="digits")

    return replace(_nemo(decoder), create=create)


_DIGITS = (digits("seen")[0], digits("seen")[1])

BACKENDS = [
    pytest.param(_scripted(is_gated=False), id="scripted-continuous"),
    pytest.param(_scripted(is_gated=True), id="scripted-gated"),
    pytest.param(
        Backend(
            create=lambda: streaming_model(engine_settings()),
            utterances=_whisper_utterances,
            texts=(SILLY.text, ACCOUNT.text),
            is_same=_is_same_english,
        ),
        id="whisper",
        marks=pytest.mark.models,
    ),
    pytest.param(_nemo(RNNT), id="nemo-rnnt"),
    pytest.param(_nemo(CTC), id="nemo-ctc"),
    pytest.param(_onnx(RNNT), id="onnx-rnnt"),
    pytest.param(_onnx(CTC), id="onnx-ctc"),
]


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    assert isinstance(request.param, Backend)
    return request.param


@pytest.fixture(scope="module")
def loaded(backend: Backend) -> StreamingModel:
    """Loaded once: weights are dear."""
    return backend.create()


@pytest.fixture
def model(loaded: StreamingModel) -> Iterator[StreamingModel]:
    yield loaded
    for index in range(loaded.capabilities.slots + 1):
        loaded.close(f"s{index}")


def chunks_of(
    model: StreamingModel, stream: str, audio: FloatSamples, *, mode_ms: int, start_sample: int = 0
) -> list[Chunk]:
    """What the engine would feed: whole chunks, the last one padded or (gated) short."""
    size = model.capabilities.chunk_samples[mode_ms]
    if not model.capabilities.is_gated:
        context = model.capabilities.finish_context_ms * SAMPLE_RATE // 1000
        padding = context + -(len(audio) + context) % size
        audio = np.concatenate([audio, np.zeros(padding, dtype=np.float32)])
    return [
        Chunk(stream, audio[position : position + size], start_sample + position)
        for position in range(0, len(audio), size)
    ]


def hear(
    model: StreamingModel,
    stream: str,
    audio: FloatSamples,
    *,
    mode_ms: int = 0,
    start_sample: int = 0,
) -> list[Hypothesis]:
    """Every hypothesis of one utterance; the last one is that of `finish`."""
    mode_ms = mode_ms or model.capabilities.default_mode_ms
    heard = []
    for chunk in chunks_of(model, stream, audio, mode_ms=mode_ms, start_sample=start_sample):
        heard += model.step([chunk])
    return heard + model.finish([stream])


def open_stream(model: StreamingModel, backend: Backend, stream: str, mode_ms: int = 0) -> None:
    mode_ms = mode_ms or model.capabilities.default_mode_ms
    model.open(stream, language=backend.language, mode_ms=mode_ms)


def test_every_mode_has_its_chunk(model: StreamingModel) -> None:
    capabilities = model.capabilities
    assert list(capabilities.modes_ms) == sorted(set(capabilities.modes_ms))
    assert capabilities.default_mode_ms in capabilities.modes_ms
    assert set(capabilities.chunk_samples) == set(capabilities.modes_ms)
    assert all(size > 0 for size in capabilities.chunk_samples.values())
    assert capabilities.slots >= 1
    assert capabilities.batch_limit >= 1


def test_no_stream_beyond_the_slots(model: StreamingModel, backend: Backend) -> None:
    for index in range(model.capabilities.slots):
        open_stream(model, backend, f"s{index}")
    with pytest.raises(NoFreeSlotError):
        open_stream(model, backend, "one too many")
    model.close("s0")
    open_stream(model, backend, "s0")


def test_unknown_mode_is_refused(model: StreamingModel, backend: Backend) -> None:
    with pytest.raises(UnsupportedModeError):
        model.open("s0", language=backend.language, mode_ms=77)
    open_stream(model, backend, "s0")
    with pytest.raises(UnsupportedModeError):
        model.set_mode("s0", mode_ms=77)


def test_unknown_stream_is_refused_but_closing_it_is_harmless(model: StreamingModel) -> None:
    chunk = Chunk(
        "nobody",
        np.zeros(
            model.capabilities.chunk_samples[model.capabilities.default_mode_ms], dtype=np.float32
        ),
        0,
    )
    with pytest.raises(UnknownStreamError):
        model.step([chunk])
    with pytest.raises(UnknownStreamError):
        model.finish(["nobody"])
    model.close("nobody")


def test_utterances_are_heard_one_after_the_other(model: StreamingModel, backend: Backend) -> None:
    """`finish` leaves nothing of an utterance in the next one, which may begin at any sample."""
    open_stream(model, backend, "s0")
    first, second = backend.utterances()
    start = len(first) + 54_321 if model.capabilities.is_gated else len(first)
    texts = (
        join_words(hear(model, "s0", first)[-1].words),
        join_words(hear(model, "s0", second, start_sample=start)[-1].words),
    )
    assert all(map(backend.is_same, texts, backend.texts)), texts


def test_every_mode_hears_the_last_word(model: StreamingModel, backend: Backend) -> None:
    audio = backend.utterances()[0]
    for mode_ms in model.capabilities.modes_ms:
        open_stream(model, backend, "s0", mode_ms)
        heard = hear(model, "s0", audio, mode_ms=mode_ms)[-1]
        model.close("s0")
        last = join_words(heard.words).split()[-1]
        assert backend.is_same(last, backend.texts[0].split()[-1]), mode_ms


def test_stable_words_never_change(model: StreamingModel, backend: Backend) -> None:
    open_stream(model, backend, "s0")
    stable: list[str] = []
    heard = hear(model, "s0", backend.utterances()[1])
    for hypothesis in heard:
        words = [word.text for word in hypothesis.words]
        assert 0 <= hypothesis.stable_words <= len(words)
        assert words[: len(stable)] == stable
        stable = words[: hypothesis.stable_words]
    assert heard[-1].stable_words == len(heard[-1].words)


def test_words_stand_in_order_within_the_audio(model: StreamingModel, backend: Backend) -> None:
    open_stream(model, backend, "s0")
    audio, start_sample = backend.utterances()[0], 160_000
    last = hear(model, "s0", audio, start_sample=start_sample)[-1]
    starts = [word.start_ms for word in last.words]
    assert starts == sorted(starts)
    assert all(word.start_ms <= word.end_ms for word in last.words)
    if model.capabilities.has_word_times:
        assert starts[0] >= samples_to_ms(start_sample)
        slack_ms = model.capabilities.finish_context_ms + model.capabilities.default_mode_ms
        assert last.words[-1].end_ms <= samples_to_ms(start_sample + len(audio)) + slack_ms


def test_a_batch_says_what_each_stream_says_alone(model: StreamingModel, backend: Backend) -> None:
    """Streams share steps at different positions without hearing each other."""
    if model.capabilities.batch_limit < 2 or model.capabilities.slots < 2:
        pytest.skip("this backend takes one stream a step")
    mode_ms = model.capabilities.default_mode_ms
    plans = []
    for index, audio in enumerate(backend.utterances()):
        open_stream(model, backend, f"s{index}")
        plans.append(chunks_of(model, f"s{index}", audio, mode_ms=mode_ms))
    model.step([plans[1].pop(0)])  # staggered
    while any(plans):
        batch = [plan.pop(0) for plan in plans if plan]
        hypotheses = model.step(batch)
        assert [item.stream for item in hypotheses] == [chunk.stream for chunk in batch]
    texts = [join_words(item.words) for item in model.finish(["s0", "s1"])]
    assert all(map(backend.is_same, texts, backend.texts)), texts


def test_mode_changes_between_two_steps(model: StreamingModel, backend: Backend) -> None:
    """No word is lost or doubled where the mode changes."""
    first_mode, last_mode = model.capabilities.modes_ms[0], model.capabilities.modes_ms[-1]
    audio = backend.utterances()[1]
    open_stream(model, backend, "s0", first_mode)
    half = model.capabilities.chunk_samples[first_mode] * 5
    for chunk in chunks_of(model, "s0", audio, mode_ms=first_mode)[:5]:
        model.step([chunk])
    model.set_mode("s0", mode_ms=last_mode)
    last = hear(model, "s0", audio[half:], mode_ms=last_mode, start_sample=half)[-1]
    assert backend.is_same(join_words(last.words), backend.texts[1])


def test_finish_without_audio_has_no_words(model: StreamingModel, backend: Backend) -> None:
    open_stream(model, backend, "s0")
    assert [item.words for item in model.finish(["s0"])] == [()]


def test_a_continuous_model_hears_no_words_in_silence(
    model: StreamingModel, backend: Backend
) -> None:
    """A gated model never gets it: voice activity stands before it."""
    if model.capabilities.is_gated:
        pytest.skip("gated by voice activity")
    open_stream(model, backend, "s0")
    assert hear(model, "s0", np.zeros(SAMPLE_RATE, dtype=np.float32))[-1].words == ()
