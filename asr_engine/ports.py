"""What the engine asks of a backend. Implementations live in `asr_engine.backends`.

The streaming port has one shape for two kinds of model. A *continuous* model (cache-aware: NeMo)
is fed every chunk of a stream, silence included, and each frame is encoded once. A *gated* model
(Whisper with LocalAgreement) is fed only the audio of an open utterance. In both, the engine
decides where an utterance ends and calls `finish`; a model never closes one by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.results import Segment, Word


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a streaming model can do. Pages offer only this.

    `modes_ms` are the latency modes, ascending; `chunk_samples` gives the samples one step consumes
    in each. `takes_longer_chunks` says that a step may take a multiple of the chunk, so that a
    stream that lags catches up. `mixes_chunks`: a step may take the chunk of any mode, whatever the
    stream's mode; all chunks of one step have one length. `finish_context_ms` is the audio that
    must follow the end of speech before `finish`. `languages` empty means any.
    """

    name: str
    languages: tuple[str, ...]
    can_detect_language: bool
    modes_ms: tuple[int, ...]
    default_mode_ms: int
    chunk_samples: dict[int, int] = field(default_factory=dict)
    is_gated: bool = False
    takes_longer_chunks: bool = False
    mixes_chunks: bool = False
    finish_context_ms: int = 0
    has_word_times: bool = True
    batch_limit: int = 1
    slots: int = 1

    def knows(self, language: str | None) -> bool:
        """Whether a stream may be opened in `language`; None is the model's own choice."""
        return language is None or not self.languages or language in self.languages


@dataclass(frozen=True, slots=True)
class Chunk:
    """Audio of one stream for one step: float32 [n], 16 kHz; `start_sample` on its clock.

    Successive chunks of one utterance are contiguous. A continuous model gets exactly the
    `chunk_samples` of its mode (of any mode, where it mixes chunks; or multiples, where it takes
    longer ones), padded with zeros where the audio ends. A gated model may get one shorter chunk as
    the last of an utterance: `finish` follows at once, so that it need only be stored.
    """

    stream: str
    samples: FloatSamples
    start_sample: int


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Words of the open utterance so far; the first `stable_words` of them no longer change."""

    stream: str
    words: tuple[Word, ...]
    stable_words: int
    language: str | None = None


class StreamingModel(Protocol):
    """A streaming recogniser with a fixed pool of slots. One thread calls it."""

    @property
    def capabilities(self) -> Capabilities: ...

    def open(self, stream: str, *, language: str | None, mode_ms: int) -> None:
        """Take a slot. Raises NoFreeSlotError, UnsupportedLanguageError, UnsupportedModeError."""

    def set_mode(self, stream: str, *, mode_ms: int) -> None:
        """Change the latency mode between two steps; no word may be lost or doubled."""

    def step(self, chunks: Sequence[Chunk]) -> list[Hypothesis]:
        """One model step: at most one chunk a stream. Same order as `chunks`.

        All chunks of one step have one length, but for multiples of it where the model takes longer
        chunks, and for the short last chunk of a gated model's utterance.

        After an exception the state of these streams is undefined: the engine closes them.
        """

    def finish(self, streams: Sequence[str]) -> list[Hypothesis]:
        """Close the open utterance of each stream and return its last hypothesis, all stable.

        The next chunk of a stream begins a new utterance, at any sample.
        """

    def close(self, stream: str) -> None:
        """Free the slot. Harmless for an unknown stream."""


class VoiceActivityDetector(Protocol):
    """Speech probability for consecutive windows, one state per stream."""

    @property
    def window_samples(self) -> int: ...

    def open(self, stream: str) -> None: ...

    def detect(self, windows: Sequence[Chunk]) -> list[float]:
        """Probability 0..1 for each window of exactly `window_samples`; one window a stream."""

    def close(self, stream: str) -> None: ...


@dataclass(frozen=True, slots=True)
class WindowSpan:
    """A stretch of the recording inside a window: it begins at `offset` in the window's samples
    and at `start_sample` in the recording. Voice activity heard speech in
    [`speech_start`, `speech_end`), offsets in the window as well.
    """

    offset: int
    start_sample: int
    speech_start: int
    speech_end: int


SHORT_SAMPLES: Final = 10 * SAMPLE_RATE
"""A window up to this length is short: a model may read it in less time."""


@dataclass(frozen=True, slots=True)
class Window:
    """At most 30 s of audio cut in silence, on a clock that counts from `start_sample`.

    It joins one or several spans; silence between them may be left out. A model need not know.

    `channel` is the label of a channel that is heard on its own. `resume_samples` says from where
    each channel must be heard again once this window is done; empty where work cannot resume there.
    `features` are what a model has prepared.
    """

    start_sample: int
    samples: FloatSamples
    spans: tuple[WindowSpan, ...] = ()
    channel: str | None = None
    resume_samples: tuple[int, ...] = ()
    features: object = None

    @property
    def end_sample(self) -> int:
        """End of the window's last span, in samples of the recording."""
        if not self.spans:
            return self.start_sample + len(self.samples)
        last = self.spans[-1]
        return last.start_sample + len(self.samples) - last.offset


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How a pass decodes its windows.

    `beam_size` 1 is greedy. Up to `candidates` texts of each window are asked for. A `temperature`
    above 0 samples instead of searching. `avoids_repetition` lets no run of words come twice.
    `hotwords` are terms that the decoder is told to expect.
    """

    beam_size: int = 1
    candidates: int = 1
    temperature: float = 0.0
    avoids_repetition: bool = False
    hotwords: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One text that a model may have heard in a window.

    The probabilities are the decoder's own: the mean natural logarithm over the tokens, and that
    nobody speaks. `compression_ratio` is high where the text repeats itself. `tokens` are opaque:
    the model times them.
    """

    text: str
    mean_log_probability: float
    no_speech_probability: float
    compression_ratio: float
    tokens: object = None


@dataclass(frozen=True, slots=True)
class Onward:
    """A place in a window to go on from: the words heard up to there, and the sample of the
    window's samples."""

    before: tuple[Word, ...]
    sample: int


class BatchModel(Protocol):
    """A recogniser of whole windows.

    `encode` is the dear part; its output is opaque, is decoded one or several times (draft, refine,
    retries) and dropped by the caller.
    """

    @property
    def name(self) -> str: ...

    @property
    def languages(self) -> tuple[str, ...]: ...

    @property
    def batch_windows(self) -> int:
        """Windows that it takes best in one call; between calls work may stop or wait."""

    @property
    def refine_share(self) -> float:
        """Share of the audio that a refine pass may hear again; 1 is all."""

    @property
    def works_beside(self) -> bool:
        """Whether it has a device of its own, so that others may use the cores meanwhile."""

    def prepare(self, window: Window) -> Window:
        """The window with its features, which spares `encode` the work; in any thread."""

    def encode(self, windows: Sequence[Window], *, room_samples: int = 0) -> object:
        """`room_samples` is the longest window of those that will be gathered together: a model
        that takes less time for short windows makes the same room for all of them."""

    def gather(self, places: Sequence[tuple[object, int]]) -> object:
        """Encoder output of single windows, each given by an output and its number in there."""

    def language_scores(self, windows: Sequence[Window], encoded: object) -> list[dict[str, float]]:
        """Probability of each language for each window, which must hold speech."""

    def decode(
        self,
        windows: Sequence[Window],
        encoded: object,
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        """What may have been said in each window, most probable first; `languages` one a window.

        Raises UnsupportedLanguageError.
        """

    def decode_onward(
        self,
        windows: Sequence[Window],
        encoded: object,
        onwards: Sequence[Onward],
        *,
        languages: Sequence[str],
        options: DecodeOptions,
    ) -> list[list[Candidate]]:
        """The same from a place in each window on; none where nothing more is heard.

        A candidate's text is the whole window's, its figures are those of what is new. Raises
        UnsupportedLanguageError.
        """

    def time_words(
        self,
        windows: Sequence[Window],
        encoded: object,
        candidates: Sequence[Candidate],
        *,
        languages: Sequence[str],
    ) -> list[list[Segment]]:
        """The chosen candidate of each window as segments with words, on the window's clock.

        Raises UnsupportedLanguageError.
        """


class Rescorer(Protocol):
    """Chooses among candidates by what it knows of names, terms and the language."""

    def choose(self, candidates: Sequence[Candidate]) -> int:
        """Index of the best one; they come most probable first and are at least one."""

    def hotwords(self, candidates: Sequence[Candidate], language: str) -> str:
        """Terms that none of them holds but that may have been said; "" for none."""

    def spelt(self, words: Sequence[Word]) -> list[Word]:
        """The same words, names in the capitals that they are known with."""


class LanguageModel(Protocol):
    """Knows how an organisation's sentences go."""

    def log_probability(self, units: Sequence[str]) -> float:
        """Natural logarithm of a whole text's probability; `units` as `spoken_units` gives them."""


class SpeechFinder(Protocol):
    """Finds speech in a decoded recording of any length, in bounded memory."""

    def speech_probabilities(self, samples: Iterable[FloatSamples]) -> Iterator[float]:
        """One probability for each successive window of `window_samples`.

        Reads at most ten seconds of audio ahead of what it has yielded.
        """

    @property
    def window_samples(self) -> int: ...


class Clock(Protocol):
    """Monotonic seconds; virtual in tests."""

    def now(self) -> float: ...
