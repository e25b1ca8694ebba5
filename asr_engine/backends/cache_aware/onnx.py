"""Cache-aware models on ONNX Runtime, for machines without a GPU: needs neither torch nor NeMo.

Serves what `export.py` made of a NeMo model. What a stream carries from chunk to chunk lies here in
arrays with a row for each slot: a step gathers the rows of its streams, runs the graphs once for
all of them and writes the rows back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import FloatSamples
from asr_engine.backends.cache_aware.network import NetworkTraits, Token
from asr_engine.backends.onnx_session import open_network
from asr_engine.errors import StreamError, UnsupportedLanguageError

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]

ENCODER: Final = "encoder.onnx"
PREDICTOR: Final = "predictor.onnx"
JOINT: Final = "joint.onnx"
FRONT_END: Final = "front_end.npz"
DESCRIPTION: Final = "network.json"
RNNT: Final = "rnnt"
CTC: Final = "ctc"

MAX_SYMBOLS: Final = 10
"""Tokens of one frame beyond which the decoder goes on to the next."""


@dataclass(frozen=True, slots=True)
class Description:
    """What `network.json` says of an exported model.

    `prompts` are the indices that tell a multilingual model its language; `prompt_to_detect` stands
    for none.
    """

    decoder: str
    pieces: tuple[str, ...]
    frame_samples: int
    hop_samples: int
    fft_samples: int
    kept_mel_frames: int
    preemphasis: float
    log_guard: float
    chunk_frames: Mapping[int, int]
    prompts: Mapping[str, int]
    prompt_to_detect: int
    can_detect_language: bool

    @property
    def blank(self) -> int:
        return len(self.pieces)

    @classmethod
    def read(cls, path: Path) -> Description:
        """The file must be one that the model store verified."""
        values = json.loads(path.read_text())
        values["pieces"] = tuple(values["pieces"])
        values["chunk_frames"] = {
            int(mode_ms): frames for mode_ms, frames in values["chunk_frames"].items()
        }
        return cls(**values)

    def write(self, path: Path) -> None:
        fields = {name: getattr(self, name) for name in self.__slots__}
        path.write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n")


class OnnxNetwork:
    """A Network over the graphs in `folder`, which the model store verified."""

    def __init__(self, folder: Path, *, slots: int, batch_limit: int, threads: int = 1) -> None:
        self._description = Description.read(folder / DESCRIPTION)
        self._encoder = open_network(folder / ENCODER, threads=threads)
        self._front_end = _FrontEnd(folder / FRONT_END, self._description, slots)
        inputs = {node.name: node.shape for node in self._encoder.get_inputs()}
        self._is_prompted = "prompt" in inputs
        self._attention = np.zeros((slots, *inputs["attention"][1:]), np.float32)
        self._convolution = np.zeros((slots, *inputs["convolution"][1:]), np.float32)
        self._cached = np.zeros(slots, np.int64)
        self._prompts = np.zeros(slots, np.int64)
        self._decoder: _Decoder
        if self._description.decoder == RNNT:
            self._decoder = _RnntDecoder(folder, self._description, slots, threads)
        else:
            self._decoder = _CtcDecoder(self._description, slots)
        self._traits = NetworkTraits(
            pieces=self._description.pieces,
            chunk_frames=self._description.chunk_frames,
            frame_samples=self._description.frame_samples,
            languages=tuple(self._description.prompts),
            can_detect_language=self._description.can_detect_language,
            slots=slots,
            batch_limit=batch_limit,
        )
        self._chunk_samples = {
            frames * self._description.frame_samples
            for frames in self._description.chunk_frames.values()
        }

    @property
    def traits(self) -> NetworkTraits:
        return self._traits

    def reset(self, slot: int, *, language: str | None) -> None:
        self._prompts[slot] = self._prompt(language)
        self._front_end.reset(slot)
        self._attention[slot] = 0
        self._convolution[slot] = 0
        self._cached[slot] = 0
        self._decoder.reset([slot])

    def reset_decoder(self, slots: Sequence[int]) -> None:
        self._decoder.reset(slots)

    def step(self, slots: Sequence[int], audio: FloatSamples) -> list[list[Token]]:
        self._check(slots, audio)
        rows = np.array(slots, np.int64)
        mel, front_end_state = self._front_end.hear(rows, audio)
        inputs = {
            "mel": mel,
            "attention": self._attention[rows],
            "convolution": self._convolution[rows],
            "cached": self._cached[rows],
        }
        if self._is_prompted:
            inputs["prompt"] = self._prompts[rows]
        heard, attention, convolution, cached = self._encoder.run(None, inputs)
        tokens, decoder_state = self._decoder.decode(rows, heard)
        # Only now that nothing can fail any more, so that a failed step has changed no slot.
        self._front_end.keep(rows, front_end_state)
        self._attention[rows] = attention
        self._convolution[rows] = convolution
        self._cached[rows] = cached
        self._decoder.keep(rows, decoder_state)
        return tokens

    def _prompt(self, language: str | None) -> int:
        if language is None or not self._is_prompted:
            return self._description.prompt_to_detect
        try:
            return self._description.prompts[language]
        except KeyError:
            raise UnsupportedLanguageError from None

    def _check(self, slots: Sequence[int], audio: FloatSamples) -> None:
        if len(set(slots)) != len(slots) or len(slots) != len(audio):
            raise StreamError("one chunk for each of several distinct slots")
        if audio.shape[1] not in self._chunk_samples:
            raise StreamError("chunks must have the length of one latency mode")


class _FrontEnd:
    """Log-mel frames of successive chunks, equal to those of NeMo's streaming feature buffer.

    A chunk's frames are computed with the hop before it, and the encoder's subsampling sees the
    last frames of the chunk before. What lies beyond either end of that audio counts as silence,
    as in training's first and last frames.
    """

    def __init__(self, path: Path, description: Description, slots: int) -> None:
        with np.load(path) as arrays:
            window, filters = arrays["window"], arrays["filters"]
        fft_samples = description.fft_samples
        margin = (fft_samples - len(window)) // 2
        self._window = np.zeros(fft_samples, np.float32)
        self._window[margin : margin + len(window)] = window
        self._filters = np.ascontiguousarray(filters.T)
        self._margin = fft_samples // 2
        self._hop_samples = description.hop_samples
        self._kept = description.kept_mel_frames
        self._preemphasis = np.float32(description.preemphasis)
        self._guard = np.float32(description.log_guard)
        self._samples = np.zeros((slots, self._hop_samples), np.float32)
        self._silence = np.log(self._guard)
        self._mel = np.full((slots, len(filters), self._kept), self._silence, np.float32)

    def reset(self, slot: int) -> None:
        self._samples[slot] = 0
        self._mel[slot] = self._silence

    def hear(self, rows: Indices, audio: FloatSamples) -> tuple[Floats, tuple[Floats, Floats]]:
        """Mel frames [batch, bands, kept + new] of `audio` [batch, samples], and the state."""
        samples = np.concatenate((self._samples[rows], audio), axis=1)
        seen = np.concatenate((self._mel[rows], self._spectrum(samples)), axis=2)
        return seen, (samples[:, -self._hop_samples :], seen[:, :, -self._kept :])

    def keep(self, rows: Indices, state: tuple[Floats, Floats]) -> None:
        self._samples[rows], self._mel[rows] = state

    def _spectrum(self, samples: Floats) -> Floats:
        """Log-mel frames [batch, bands, frames] of `samples` [batch, hop + chunk], one for each hop
        of the chunk."""
        emphasised = samples.copy()
        emphasised[:, 1:] -= self._preemphasis * samples[:, :-1]
        padded = np.pad(emphasised, ((0, 0), (self._margin, self._margin)))
        frames = np.lib.stride_tricks.sliding_window_view(padded, len(self._window), axis=1)
        # Frame 0 belongs to the hop before, and was computed with it.
        frames = frames[:, self._hop_samples : samples.shape[1] : self._hop_samples]
        spectrum = np.fft.rfft(frames * self._window)
        power = np.square(spectrum.real) + np.square(spectrum.imag)
        mel = np.log(power.astype(np.float32, copy=False) @ self._filters + self._guard)
        return np.ascontiguousarray(mel.transpose(0, 2, 1))


class _Decoder(Protocol):
    """Greedy decoding with a state for each slot; `decode` changes none, `keep` takes it over."""

    def reset(self, slots: Sequence[int]) -> None: ...

    def decode(self, rows: Indices, heard: Floats) -> tuple[list[list[Token]], Any]: ...

    def keep(self, rows: Indices, state: Any) -> None: ...


class _CtcDecoder:
    """Greedy CTC: the most likely label of each frame, repetitions and blanks left out."""

    def __init__(self, description: Description, slots: int) -> None:
        self._blank = description.blank
        self._last = np.full(slots, self._blank, np.int64)

    def reset(self, slots: Sequence[int]) -> None:
        self._last[list(slots)] = self._blank

    def decode(self, rows: Indices, heard: Floats) -> tuple[list[list[Token]], Indices]:
        """Tokens of log probabilities [batch, frames, labels], and the last labels."""
        labels = heard.argmax(axis=2)
        confidences = np.exp(heard.max(axis=2))
        before = np.concatenate((self._last[rows, None], labels[:, :-1]), axis=1)
        is_token = (labels != before) & (labels != self._blank)
        tokens = [
            [
                Token(int(labels[row, frame]), int(frame), float(confidences[row, frame]))
                for frame in np.flatnonzero(is_token[row])
            ]
            for row in range(len(labels))
        ]
        return tokens, labels[:, -1]

    def keep(self, rows: Indices, state: Indices) -> None:
        self._last[rows] = state


@dataclass(frozen=True, slots=True)
class _Said:
    """What the prediction network carries: its output [rows, size], and its states
    [layers, rows, size]."""

    output: Floats
    hidden: Floats
    cell: Floats

    def take(self, rows: Indices) -> _Said:
        return _Said(self.output[rows], self.hidden[:, rows], self.cell[:, rows])

    def put(self, rows: Indices | list[int], other: _Said) -> None:
        self.output[rows] = other.output
        self.hidden[:, rows] = other.hidden
        self.cell[:, rows] = other.cell


class _RnntDecoder:
    """Greedy RNNT by labels (https://arxiv.org/abs/2406.06220): one call of the joint network looks
    at all frames after a token, and the prediction network runs once for each token.
    """

    def __init__(self, folder: Path, description: Description, slots: int, threads: int) -> None:
        self._blank = description.blank
        self._predictor = open_network(folder / PREDICTOR, threads=threads)
        self._joint = open_network(folder / JOINT, threads=threads)
        layers, _, size = self._predictor.get_inputs()[1].shape
        zeros = np.zeros((layers, 1, size), np.float32)
        # The blank's embedding is zero: it begins a stream.
        self._fresh = self._predict(np.array([self._blank]), zeros, zeros)
        self._said = _Said(
            np.zeros((slots, self._fresh.output.shape[1]), np.float32),
            np.zeros((layers, slots, size), np.float32),
            np.zeros((layers, slots, size), np.float32),
        )
        self.reset(range(slots))

    def reset(self, slots: Sequence[int]) -> None:
        self._said.put(list(slots), self._fresh)

    def decode(self, rows: Indices, heard: Floats) -> tuple[list[list[Token]], _Said]:
        """Tokens of `heard` [batch, frames, joint size], and what was said after them."""
        said = self._said.take(rows)
        batch, frames = heard.shape[:2]
        tokens: list[list[Token]] = [[] for _ in range(batch)]
        positions, symbols = np.zeros(batch, np.int64), np.zeros(batch, np.int64)
        active = np.arange(batch)
        while len(active):
            begin = int(positions[active].min())
            scores = self._joint.run(
                None, {"heard": heard[active, begin:], "said": said.output[active]}
            )[0]
            labels = scores.argmax(axis=2)
            is_ahead = np.arange(begin, frames) >= positions[active, None]
            is_token = is_ahead & (labels != self._blank)
            has_token = is_token.any(axis=1)
            index = is_token.argmax(axis=1)[has_token]
            labels = labels[has_token, index]
            confidences = np.exp(scores[has_token, index, labels])
            active, index = active[has_token], index + begin
            if not len(active):
                break
            for row, label, frame, confidence in zip(
                active, labels, index, confidences, strict=True
            ):
                tokens[row].append(Token(int(label), int(frame), float(confidence)))
            before = said.take(active)
            said.put(active, self._predict(labels, before.hidden, before.cell))
            symbols[active] = np.where(index == positions[active], symbols[active], 0) + 1
            is_full = symbols[active] >= MAX_SYMBOLS
            positions[active] = index + is_full
            symbols[active[is_full]] = 0
            active = active[positions[active] < frames]
        return tokens, said

    def keep(self, rows: Indices, state: _Said) -> None:
        self._said.put(rows, state)

    def _predict(self, labels: Indices, hidden: Floats, cell: Floats) -> _Said:
        inputs = {"label": labels, "hidden": hidden, "cell": cell}
        return _Said(*self._predictor.run(None, inputs))
