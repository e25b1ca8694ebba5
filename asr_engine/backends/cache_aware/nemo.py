"""NeMo cache-aware FastConformer models on torch, CPU or CUDA.

NeMo supplies the model, its front end, its streaming encoder and its batched label-looping decoder
(https://arxiv.org/abs/2406.06220). What a stream carries from chunk to chunk lies here in tensors
with a row for each slot, on the model's device: a step gathers the rows of its streams, runs NeMo
once for all of them and writes the rows back. Decision 10 says why not NeMo's own pipeline, and
`tests/asr_engine/backends/test_nemo_pipeline.py` holds this module to the pipeline's text.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from asr_engine.audio import SAMPLE_RATE, FloatSamples
from asr_engine.backends.cache_aware.languages import PromptLanguages
from asr_engine.backends.cache_aware.network import NetworkTraits, Token
from asr_engine.errors import ModelError, StreamError

RNNT: Final = "rnnt"
CTC: Final = "ctc"
DTYPES: Final[Mapping[str, torch.dtype]] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
LOG_MEL_OF_SILENCE: Final = -16.635532333438686
"""log(2**-24), what NeMo's front end gives for zeros: the mel frames before a stream began."""
MAX_SYMBOLS: Final = 10
"""Tokens of one frame beyond which the decoder goes on to the next."""


@dataclass(frozen=True, slots=True)
class _Lookahead:
    """The encoder's settings for one chunk length: they belong to a step, not to a stream."""

    mode_ms: int
    frames: int
    att_context_size: list[int]
    streaming_cfg: Any


class NemoNetwork:
    """A Network over one copy of a restored NeMo model's weights.

    The model may be an RNNT, a CTC or a hybrid one; `decoder` chooses where there are both. On a
    CPU NeMo computes in float32 whatever `dtype` says. Raises ModelError for a model that cannot
    stream with caches.
    """

    def __init__(
        self,
        model: Any,
        *,
        decoder: str = RNNT,
        device: str = "cpu",
        dtype: str = "float32",
        slots: int,
        batch_limit: int,
    ) -> None:
        self._device = torch.device(device)
        self._dtype = DTYPES[dtype] if self._device.type == "cuda" else torch.float32
        self._model = model.to(self._device, self._dtype).eval()
        self._encoder = model.encoder
        self._languages = PromptLanguages.of(model)
        self._front_end = _FrontEnd(model, self._device, slots)
        self._lookaheads = _lookaheads(model, self._front_end.hop_samples)
        frame_samples = self._front_end.hop_samples * self._encoder.subsampling_factor
        # Row 0 of every cache tensor's slot dimension belongs to slot 0, and so on.
        self._caches: tuple[Tensor, Tensor, Tensor] = self._encoder.get_initial_cache_state(
            batch_size=slots, dtype=self._dtype, device=self._device
        )
        with torch.inference_mode():
            make = _RnntDecoder if _chosen_decoder(model, decoder) == RNNT else _CtcDecoder
            self._decoder = make(model, self._device, slots)
        self._prompts = torch.zeros(slots, dtype=torch.long, device=self._device)
        self._traits = NetworkTraits(
            pieces=tuple(self._decoder.pieces),
            chunk_frames={item.mode_ms: item.frames for item in self._lookaheads.values()},
            frame_samples=frame_samples,
            languages=self._languages.languages,
            can_detect_language=self._languages.can_detect,
            slots=slots,
            batch_limit=batch_limit,
        )

    @property
    def traits(self) -> NetworkTraits:
        return self._traits

    @torch.inference_mode()
    def reset(self, slot: int, *, language: str | None) -> None:
        self._prompts[slot] = self._languages.prompt(language)
        self._front_end.reset(slot)
        channel, time, length = self._caches
        channel[:, slot] = 0
        time[:, slot] = 0
        length[slot] = 0
        self._decoder.reset([slot])

    @torch.inference_mode()
    def reset_decoder(self, slots: Sequence[int]) -> None:
        self._decoder.reset(slots)

    @torch.inference_mode()
    def step(self, slots: Sequence[int], audio: FloatSamples) -> list[list[Token]]:
        lookahead = self._lookahead_of(slots, audio)
        rows = torch.tensor(slots, device=self._device)
        mel, front_end_state = self._front_end.hear(rows, audio)
        self._encoder.att_context_size = lookahead.att_context_size
        self._encoder.streaming_cfg = lookahead.streaming_cfg
        channel, time, length = self._caches
        encoded, encoded_length, *caches = self._encoder.cache_aware_stream_step(
            processed_signal=mel.to(self._dtype),
            processed_signal_length=torch.full_like(rows, mel.shape[2]),
            cache_last_channel=channel.index_select(1, rows),
            cache_last_time=time.index_select(1, rows),
            cache_last_channel_len=length.index_select(0, rows),
            keep_all_outputs=False,
        )
        encoded = self._languages.condition(self._model, encoded, self._prompts[rows])
        tokens, decoder_state = self._decoder.decode(rows, encoded, encoded_length)
        # Only now that nothing can fail any more, so that a failed step has changed no slot.
        self._front_end.keep(rows, front_end_state)
        channel.index_copy_(1, rows, caches[0])
        time.index_copy_(1, rows, caches[1])
        length.index_copy_(0, rows, caches[2])
        self._decoder.keep(rows, decoder_state)
        return tokens

    def _lookahead_of(self, slots: Sequence[int], audio: FloatSamples) -> _Lookahead:
        if len(set(slots)) != len(slots) or len(slots) != len(audio):
            raise StreamError("one chunk for each of several distinct slots")
        try:
            return self._lookaheads[audio.shape[1]]
        except KeyError:
            raise StreamError("chunks must have the length of one latency mode") from None


class _FrontEnd:
    """Log-mel frames of successive chunks, equal to those of NeMo's streaming feature buffer.

    A chunk's frames are computed with the hop before it, and the encoder's subsampling sees the
    last frames of the chunk before.
    """

    def __init__(self, model: Any, device: torch.device, slots: int) -> None:
        from nemo.collections.asr.inference.utils.pipeline_utils import (
            make_preprocessor_deterministic,
        )
        from nemo.collections.asr.models import ASRModel

        config = make_preprocessor_deterministic(copy.deepcopy(model.cfg)).preprocessor
        if config.sample_rate != SAMPLE_RATE:
            raise ModelError("the model hears another sample rate than 16 kHz")
        self._preprocessor = ASRModel.from_config_dict(config).to(device)
        self._device = device
        self.hop_samples = round(config.window_stride * SAMPLE_RATE)
        self._samples = torch.zeros(slots, self.hop_samples, device=device)
        self._mel = torch.full(
            (slots, config.features, _second(model.encoder.streaming_cfg.pre_encode_cache_size)),
            LOG_MEL_OF_SILENCE,
            device=device,
        )

    def reset(self, slot: int) -> None:
        self._samples[slot] = 0
        self._mel[slot] = LOG_MEL_OF_SILENCE

    def hear(self, rows: Tensor, audio: FloatSamples) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Mel frames [batch, features, kept + new] of `audio` [batch, samples], and the state."""
        chunk = torch.from_numpy(audio).to(self._device)
        samples = torch.cat([self._samples[rows], chunk], dim=1)
        lengths = torch.full_like(rows, samples.shape[1])
        mel, _ = self._preprocessor(input_signal=samples, length=lengths)
        # The frame of the hop before was computed with the last chunk.
        new = mel[:, :, 1 : 1 + chunk.shape[1] // self.hop_samples]
        seen = torch.cat([self._mel[rows], new], dim=2)
        kept = self._mel.shape[2]
        return seen, (samples[:, -self.hop_samples :], seen[:, :, seen.shape[2] - kept :])

    def keep(self, rows: Tensor, state: tuple[Tensor, Tensor]) -> None:
        self._samples.index_copy_(0, rows, state[0])
        self._mel.index_copy_(0, rows, state[1])


class _RnntDecoder:
    """NeMo's label looping, its state held by slot instead of by hypothesis.

    A hypothesis would keep every token for the life of a stream; the state that decoding goes on
    from is only the prediction network's.
    """

    def __init__(self, model: Any, device: torch.device, slots: int) -> None:
        from nemo.collections.asr.parts.submodules.rnnt_decoding import RNNTDecodingConfig
        from nemo.collections.asr.parts.submodules.transducer_decoding.rnnt_label_looping import (
            GreedyBatchedRNNTLabelLoopingComputer,
        )

        config = RNNTDecodingConfig(strategy="greedy_batch", fused_batch_size=-1)
        config.greedy.max_symbols = MAX_SYMBOLS
        config.greedy.use_cuda_graph_decoder = False
        config.greedy.preserve_frame_confidence = True
        config.confidence_cfg.preserve_frame_confidence = True
        config.confidence_cfg.exclude_blank = True
        _change_decoding(model, config, RNNT)
        self._computer = model.decoding.decoding.decoding_computer
        if not isinstance(self._computer, GreedyBatchedRNNTLabelLoopingComputer):
            raise ModelError("the model's decoder is no plain RNNT")
        self.pieces = list(model.joint.vocabulary)
        self._device = device
        self._fresh = self._state_before_text(model, 1)
        self._state = self._state_before_text(model, slots)
        if any(part.shape[1] != slots for part in self._state.predictor_states):
            raise ModelError("the model's prediction network is no LSTM")

    def _state_before_text(self, model: Any, slots: int) -> Any:
        parameter = next(model.joint.parameters())
        no_frames = parameter.new_zeros(slots, 1, model.joint.encoder_hidden)
        lengths = torch.zeros(slots, dtype=torch.long, device=self._device)
        return self._computer(x=no_frames, out_len=lengths)[1]

    def reset(self, slots: Sequence[int]) -> None:
        rows = torch.tensor(slots, device=self._device)
        for part, fresh in zip(
            self._state.predictor_states, self._fresh.predictor_states, strict=True
        ):
            part.index_copy_(1, rows, fresh.expand(-1, len(slots), -1).contiguous())
        self._state.predictor_outputs[rows] = self._fresh.predictor_outputs
        self._state.labels[rows] = self._fresh.labels

    def decode(
        self, rows: Tensor, encoded: Tensor, lengths: Tensor
    ) -> tuple[list[list[Token]], Any]:
        """Tokens of encoder output [batch, dimension, frames], and the state after them."""
        before = copy.copy(self._state)
        before.predictor_states = tuple(
            part.index_select(1, rows) for part in self._state.predictor_states
        )
        before.predictor_outputs = self._state.predictor_outputs[rows]
        before.labels = self._state.labels[rows]
        # Zeros, so that frames count from the chunk's beginning.
        before.decoded_lengths = torch.zeros_like(rows)
        found, after = self._computer(
            x=encoded.transpose(1, 2), out_len=lengths, prev_batched_state=before
        )
        return _tokens_of(found), after

    def keep(self, rows: Tensor, state: Any) -> None:
        for part, new in zip(self._state.predictor_states, state.predictor_states, strict=True):
            part.index_copy_(1, rows, new.to(part.dtype))
        self._state.predictor_outputs.index_copy_(0, rows, state.predictor_outputs)
        self._state.labels.index_copy_(0, rows, state.labels)


class _CtcDecoder:
    """Greedy CTC: the most likely label of each frame, repetitions and blanks left out."""

    def __init__(self, model: Any, device: torch.device, slots: int) -> None:
        self._head = model.ctc_decoder if hasattr(model, "ctc_decoder") else model.decoder
        self.pieces = list(self._head.vocabulary)
        self._blank = len(self.pieces)
        self._device = device
        self._last = torch.full((slots,), self._blank, device=device)

    def reset(self, slots: Sequence[int]) -> None:
        self._last[torch.tensor(slots, device=self._device)] = self._blank

    def decode(
        self, rows: Tensor, encoded: Tensor, lengths: Tensor
    ) -> tuple[list[list[Token]], Tensor]:
        """Tokens of encoder output [batch, dimension, frames], and the last labels."""
        del lengths  # all frames of a chunk are valid
        probabilities, labels = self._head(encoder_output=encoded).exp().max(dim=-1)
        before = torch.cat([self._last[rows, None], labels[:, :-1]], dim=1)
        is_token = (labels != before) & (labels != self._blank)
        tokens = [
            [
                Token(label, frame, confidence)
                for frame, (label, confidence, is_new) in enumerate(zip(*row, strict=True))
                if is_new
            ]
            for row in zip(
                labels.tolist(), probabilities.float().tolist(), is_token.tolist(), strict=True
            )
        ]
        return tokens, labels[:, -1]

    def keep(self, rows: Tensor, state: Tensor) -> None:
        self._last.index_copy_(0, rows, state)


def restore(path: Path, device: str) -> Any:
    """The model of a verified `.nemo` file. Raises ModelError.

    The file is an archive with a configuration that names classes to make: verify it before.
    """
    from nemo.collections.asr.models import ASRModel
    from nemo.core.classes.common import typecheck
    from nemo.utils import logging as nemo_logging

    # Its log repeats configurations, and at some levels what was said.
    nemo_logging.setLevel(logging.ERROR)
    # The checks of tensor kinds at each call cost more than a small step.
    typecheck.set_typecheck_enabled(False)
    try:
        return ASRModel.restore_from(str(path), map_location=device)
    except Exception as error:
        raise ModelError(f"{path.name} is no model that NeMo can load") from error


def memory_of_slot(model: Any, dtype: str) -> int:
    """Bytes of cache that one stream takes: the pool is as large as its slots."""
    caches = model.encoder.get_initial_cache_state(batch_size=1, dtype=DTYPES[dtype], device="meta")
    return sum(part.numel() * part.element_size() for part in caches)


def _lookaheads(model: Any, hop_samples: int) -> dict[int, _Lookahead]:
    """The encoder's latency modes by the samples of their chunk."""
    encoder = model.encoder
    if encoder.att_context_style != "chunked_limited":
        raise ModelError("the model's attention is not chunked: it cannot stream with caches")
    found = {}
    contexts = sorted(encoder.att_context_size_all, key=lambda context: -context[1])
    for context in contexts:
        encoder.set_default_att_context_size(list(context))
        config = copy.copy(encoder.streaming_cfg)
        # Whole frames, never seconds: 0.17 / 0.01 is 16 and a lost frame in floating point.
        mel_frames = _second(config.chunk_size)
        samples = mel_frames * hop_samples
        found[samples] = _Lookahead(
            mode_ms=samples * 1000 // SAMPLE_RATE,
            frames=mel_frames // encoder.subsampling_factor,
            att_context_size=list(context),
            streaming_cfg=config,
        )
    if len({context[0] for context in contexts}) > 1:
        raise ModelError("the model's latency modes keep pasts of different lengths")
    return found


def _second(size: Any) -> int:
    """NeMo gives sizes for the first chunk and for those after it; ours are all of the latter,
    preceded by silence."""
    return int(size[1] if isinstance(size, list) else size)


def _chosen_decoder(model: Any, wanted: str) -> str:
    """Which decoder to use, of those that the model has."""
    has_rnnt = hasattr(model, "joint")
    has_ctc = hasattr(model, "ctc_decoder") or not has_rnnt
    if wanted == RNNT and not has_rnnt:
        return CTC
    if wanted == CTC and not has_ctc:
        raise ModelError("the model has no CTC decoder")
    return wanted


def _change_decoding(model: Any, config: Any, kind: str) -> None:
    if hasattr(model, "ctc_decoder"):
        model.change_decoding_strategy(config, decoder_type=kind, verbose=False)
    else:
        model.change_decoding_strategy(config, verbose=False)


def _tokens_of(found: Any) -> list[list[Token]]:
    """Plain tokens of NeMo's batched hypotheses, in as few transfers from the device as may be."""
    counts = found.current_lengths.tolist()
    longest = max(counts)
    if not longest:
        return [[] for _ in counts]
    labels = found.transcript[:, :longest].tolist()
    frames = found.timestamps[:, :longest].tolist()
    confidences = found.step_confidence[:, :longest].float().tolist()
    return [
        [
            Token(*token)
            for token in zip(
                labels[row][:count], frames[row][:count], confidences[row][:count], strict=True
            )
        ]
        for row, count in enumerate(counts)
    ]
