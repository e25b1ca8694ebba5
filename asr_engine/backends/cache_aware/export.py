"""A NeMo cache-aware model made over for ONNX Runtime: see `onnx.py`, which serves the result.

Needs torch and NeMo; serving does not. The graphs compute what NeMo's encoder computes with less
work, which is what a CPU lacks:

- Keys and values of past frames are kept, where NeMo keeps the frames and projects them again at
  each step; the projected positions are constants. A step of two frames that looks back on seventy
  would otherwise spend most of its time on both.
- A chunk sees itself and the whole cache in every latency mode, since the cache is a multiple of
  every chunk. Nothing in the graph belongs to a mode, so one file serves them all.

Relative attention follows https://arxiv.org/abs/1901.02860, section 3.3, and its appendix B.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.cache_aware.languages import PromptLanguages
from asr_engine.backends.cache_aware.nemo import restore
from asr_engine.backends.cache_aware.onnx import (
    CTC,
    DESCRIPTION,
    ENCODER,
    FRONT_END,
    JOINT,
    PREDICTOR,
    RNNT,
    Description,
)
from asr_engine.errors import ModelError
from asr_engine.store import NEMO_NAME, ModelEntry, ModelKind, ModelStore

OPSET: Final = 17
EMBEDDED_BYTES: Final = 1 << 30
"""Weights beyond this stand in a file of their own: a graph holds at most 2 GB."""
ORT_DOMAIN: Final = "com.microsoft"
BLOCK_ROWS: Final = 128
INT8_ACCURACY: Final = 4
"""ONNX Runtime's word for products of bytes, the other factor rounded by block and row."""
MASKED: Final = -10_000.0
"""What a place of the cache that holds nothing yet scores; as in NeMo."""


def export_onnx(
    store: ModelStore, name: str, new_name: str, *, is_int8: bool, decoder: str | None
) -> ModelEntry:
    """Export the .nemo model `name` of the store into it as `new_name`; returns the new entry.

    `decoder` is rnnt, ctc or, where it is None, RNNT if the model has it. Raises ModelError for a
    model that is no cache-aware streaming model of the kinds that the engine serves.
    """
    if store.kind(name) is not ModelKind.NEMO:
        raise ModelError(f"{name} is no NeMo model")
    source = store.path(name)
    licence = next(status.entry.licence for status in store.status() if status.entry.name == name)
    with store.adding(
        new_name,
        kind=ModelKind.ONNX,
        description=f"{name} for ONNX Runtime{', int8' if is_int8 else ''}",
        licence=licence,
    ) as folder:
        export_model(restore(source / NEMO_NAME, "cpu"), folder, is_int8=is_int8, decoder=decoder)
    return next(status.entry for status in store.status() if status.entry.name == new_name)


def export_model(model: Any, folder: Path, *, is_int8: bool, decoder: str | None) -> None:
    """Write the graphs and the description of a restored model. Raises ModelError."""
    _refuse_unfit(model)
    has_rnnt = hasattr(model, "joint")
    has_ctc = hasattr(model, "ctc_decoder") or not has_rnnt
    chosen = decoder or (RNNT if has_rnnt else CTC)
    if not {RNNT: has_rnnt, CTC: has_ctc}[chosen]:
        raise ModelError(f"the model has no {chosen.upper()} decoder")
    if chosen == RNNT:
        _refuse_unfit_rnnt(model)
    _write_front_end(model, folder)
    model.eval()
    head = _RnntHead(model) if chosen == RNNT else _CtcHead(model)
    with _quiet(), torch.inference_mode():
        _export_encoder(_Encoder(model, head), folder, is_int8=is_int8)
        if chosen == RNNT:
            _export_predictor(model, folder)
            _export_joint(model, folder)
    _write_description(model, chosen, head.pieces, folder)


def _refuse_unfit(model: Any) -> None:
    encoder = model.encoder
    style = getattr(encoder, "att_context_style", None)
    if style != "chunked_limited" or encoder.self_attention_model != "rel_pos":
        raise ModelError("the model's attention is not chunked: it cannot stream with caches")
    for left, right in encoder.att_context_size_all:
        if left <= 0 or left % (right + 1) or left != encoder.att_context_size_all[0][0]:
            raise ModelError("the model's latency modes do not share one cache")
    if any(layer.conv.depthwise_conv._right_padding for layer in encoder.layers):  # noqa: SLF001 - no other way to ask
        raise ModelError("the model's convolutions look ahead: it cannot stream with caches")
    if encoder.streaming_cfg.cache_drop_size or encoder.reduction_position is not None:
        raise ModelError("the model drops frames between its layers")


def _refuse_unfit_rnnt(model: Any) -> None:
    if model.joint.num_extra_outputs or not hasattr(model.decoder, "prediction"):
        raise ModelError("the model's decoder is no plain RNNT")
    if not isinstance(_lstm(model), nn.LSTM):
        raise ModelError("the model's prediction network is no LSTM")


def _lstm(model: Any) -> Any:
    """The recurrent network of the prediction network, out of what wraps it."""
    network = model.decoder.prediction["dec_rnn"]
    return getattr(network, "lstm", network)


class _Attention(nn.Module):
    """Relative attention of new frames over themselves and cached keys and values."""

    positions: Tensor

    def __init__(self, attention: Any, positions: Tensor, left: int) -> None:
        """`positions` are the encodings of the distances from `left` + the longest chunk - 1 down
        to its negative."""
        super().__init__()
        self._heads, self._head_size = attention.h, attention.d_k
        self._left = left
        self._longest = (positions.shape[1] + 1) // 2 - left
        parts = (attention.linear_q, attention.linear_k, attention.linear_v)
        self._inputs = _linear(
            torch.cat([part.weight for part in parts]),
            None if parts[0].bias is None else torch.cat([part.bias for part in parts]),
        )
        self._output = attention.linear_out
        projected = attention.linear_pos(positions).view(-1, self._heads, self._head_size)
        self.register_buffer("positions", projected.permute(1, 2, 0).contiguous())
        self._bias_keys = nn.Parameter(attention.pos_bias_u.reshape(1, self._heads, 1, -1))
        self._bias_positions = nn.Parameter(attention.pos_bias_v.reshape(1, self._heads, 1, -1))

    def forward(self, frames: Tensor, cache: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`frames` [batch, new, size], `cache` [batch, 2, left, size] of keys and values, `mask`
        [batch, 1, 1, left + new] to add to the scores; the frames' new values, the new cache."""
        batch, new, size = frames.shape
        query, key, value = self._inputs(frames).split(size, dim=-1)
        seen = torch.cat([cache, torch.stack([key, value], dim=1)], dim=2)
        seen_length = self._left + new
        shape = (batch, -1, self._heads, self._head_size)
        query = query.reshape(shape).transpose(1, 2)
        keys = seen[:, 0].reshape(shape).permute(0, 2, 3, 1)
        values = seen[:, 1].reshape(shape).transpose(1, 2)
        # Distances that occur: from `left` + new - 1 down to 1 - new.
        first = self._longest - new
        distances = self.positions[:, :, first : first + seen_length + new - 1]
        by_distance = torch.matmul(query + self._bias_positions, distances)
        # Row i begins at its own distance to the oldest key, one place before row i - 1.
        shifted = functional.pad(by_distance, (1, 0)).reshape(batch, self._heads, -1, new)
        by_key = shifted[:, :, 1:].reshape(batch, self._heads, new, -1)[:, :, :, :seen_length]
        scores = torch.matmul(query + self._bias_keys, keys) + by_key
        weights = torch.softmax(scores / math.sqrt(self._head_size) + mask, dim=-1)
        heard = torch.matmul(weights, values).transpose(1, 2).reshape(batch, new, size)
        return self._output(heard), seen[:, :, -self._left :]


class _Convolution(nn.Module):
    """The convolution module over new frames and the cached ones before them."""

    def __init__(self, convolution: Any) -> None:
        super().__init__()
        self._into = _linear_of_pointwise(convolution.pointwise_conv1)
        self._depthwise = convolution.depthwise_conv
        self._norm = convolution.batch_norm
        self._norms_last = convolution.norm_type == "layer_norm"
        self._activation = convolution.activation
        self._out_of = _linear_of_pointwise(convolution.pointwise_conv2)
        self._kept = convolution.depthwise_conv.kernel_size[0] - 1

    def forward(self, frames: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """`frames` [batch, new, size], `cache` [batch, size, kept]."""
        gated = functional.glu(self._into(frames), dim=-1).transpose(1, 2)
        seen = torch.cat([cache, gated], dim=2)
        kernel = self._depthwise
        heard = functional.conv1d(seen, kernel.weight, kernel.bias, groups=kernel.groups)
        if self._norms_last:
            heard = self._norm(heard.transpose(1, 2))
        else:
            heard = self._norm(heard).transpose(1, 2)
        return self._out_of(self._activation(heard)), seen[:, :, -self._kept :]


class _Layer(nn.Module):
    """One Conformer layer with its caches."""

    def __init__(self, layer: Any, positions: Tensor, left: int) -> None:
        super().__init__()
        self._layer = layer
        self._attention = _Attention(layer.self_attn, positions, left)
        self._convolution = _Convolution(layer.conv)

    def forward(
        self, frames: Tensor, attention_cache: Tensor, convolution_cache: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        layer = self._layer
        half = layer.fc_factor
        frames = frames + half * layer.feed_forward1(layer.norm_feed_forward1(frames))
        heard, attention_cache = self._attention(layer.norm_self_att(frames), attention_cache, mask)
        frames = frames + heard
        heard, convolution_cache = self._convolution(layer.norm_conv(frames), convolution_cache)
        frames = frames + heard
        frames = frames + half * layer.feed_forward2(layer.norm_feed_forward2(frames))
        return layer.norm_out(frames), attention_cache, convolution_cache


class _Encoder(nn.Module):
    """The streaming encoder, a language prompt where the model takes one, and `head`."""

    def __init__(self, model: Any, head: nn.Module) -> None:
        super().__init__()
        encoder = model.encoder
        self._size = int(encoder.d_model)
        self._kept_frames = encoder.layers[0].conv.depthwise_conv.kernel_size[0] - 1
        self.left = int(encoder.att_context_size_all[0][0])
        self.longest = max(right + 1 for _, right in encoder.att_context_size_all)
        self.mel_bands = int(model.cfg.preprocessor.features)
        self.kept_mel_frames = _kept_mel_frames(encoder)
        self.subsampling = encoder.subsampling_factor
        self.is_prompted = PromptLanguages.of(model).is_prompted
        self._prompts = model.num_prompts if self.is_prompted else 0
        self._prompt_kernel = model.prompt_kernel if self.is_prompted else None
        self._subsample = encoder.pre_encode
        self._dropped = encoder.streaming_cfg.drop_extra_pre_encoded
        self._scale = encoder.pos_enc.xscale or 1.0
        positions = _position_encodings(self.left + self.longest, encoder.d_model)
        self._layers = nn.ModuleList(
            _Layer(layer, positions, self.left) for layer in encoder.layers
        )
        self._head = head

    def empty_caches(self, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """Keys and values, convolution, and the frames in the former, of streams that begin."""
        layers = len(self._layers)
        return (
            torch.zeros(batch, layers, 2, self.left, self._size),
            torch.zeros(batch, layers, self._size, self._kept_frames),
            torch.zeros(batch, dtype=torch.int64),
        )

    def forward(
        self, mel: Tensor, attention: Tensor, convolution: Tensor, cached: Tensor, *prompt: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """`mel` [batch, bands, kept + new], caches as `empty_caches` gives them, `prompt` [batch];
        the head's output [batch, frames, ...] and the caches."""
        frames = self._subsampled(mel) * self._scale
        new = frames.shape[1]
        places = torch.arange(self.left + new)[None]
        is_empty = places < (self.left - cached)[:, None]
        mask = is_empty.to(frames.dtype)[:, None, None] * MASKED
        attention_after, convolution_after = [], []
        for index, layer in enumerate(self._layers):
            frames, keys_values, columns = layer(
                frames, attention[:, index], convolution[:, index], mask
            )
            attention_after.append(keys_values)
            convolution_after.append(columns)
        if self._prompt_kernel is not None:
            told = functional.one_hot(prompt[0], self._prompts).to(frames.dtype)
            told = told[:, None].expand(-1, new, -1)
            frames = self._prompt_kernel(torch.cat([frames, told], dim=-1))
        return (
            self._head(frames),
            torch.stack(attention_after, dim=1),
            torch.stack(convolution_after, dim=1),
            torch.clamp(cached + new, max=self.left),
        )

    def _subsampled(self, mel: Tensor) -> Tensor:
        """Encoder frames of `mel` without those that only its kept frames made."""
        maps = mel.transpose(1, 2)[:, None]
        # The layers one by one, without NeMo's masks: every mel frame of a chunk is valid.
        for layer in self._subsample.conv:
            maps = layer(maps)
        batch, _, frames, _ = maps.shape
        joined: Tensor = self._subsample.out(maps.transpose(1, 2).reshape(batch, frames, -1))
        return joined[:, self._dropped :]


class _CtcHead(nn.Module):
    """Log probabilities of labels: [batch, frames, pieces + blank]."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._decoder = model.ctc_decoder if hasattr(model, "ctc_decoder") else model.decoder
        self.pieces = list(self._decoder.vocabulary)

    def forward(self, frames: Tensor) -> Tensor:
        scores: Tensor = self._decoder.decoder_layers(frames.transpose(1, 2))
        return torch.log_softmax(scores.transpose(1, 2), dim=-1)


class _RnntHead(nn.Module):
    """The encoder's part of the joint network: [batch, frames, joint size]."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._projection = model.joint.enc
        self.pieces = list(model.joint.vocabulary)

    def forward(self, frames: Tensor) -> Tensor:
        projected: Tensor = self._projection(frames)
        return projected


class _Predictor(nn.Module):
    """One step of the prediction network and its part of the joint network."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._decoder, self._projection = model.decoder, model.joint.pred

    def forward(self, label: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`label` [batch]; states [layers, batch, size]; [batch, joint size] and the states."""
        said, (hidden, cell) = self._decoder.predict(
            label[:, None], state=(hidden, cell), add_sos=False
        )
        return self._projection(said)[:, 0], hidden, cell


class _Joint(nn.Module):
    """Log probabilities [batch, frames, pieces + blank] of frames after what was said."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._network = model.joint.joint_net

    def forward(self, heard: Tensor, said: Tensor) -> Tensor:
        return torch.log_softmax(self._network(heard + said[:, None]), dim=-1)


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight = nn.Parameter(weight)
    if bias is not None:
        layer.bias = nn.Parameter(bias)
    return layer


def _linear_of_pointwise(convolution: Any) -> nn.Linear:
    """The same as a matrix product, which quantises."""
    return _linear(convolution.weight[:, :, 0], convolution.bias)


def _position_encodings(length: int, size: int) -> Tensor:
    """Sinusoids [1, 2 * length - 1, size] of the distances from `length` - 1 down to its negative,
    sines and cosines in turn."""
    distances = torch.arange(length - 1, -length, -1, dtype=torch.float32)[:, None]
    rates = torch.exp(torch.arange(0, size, 2, dtype=torch.float32) * (-math.log(10_000.0) / size))
    return torch.stack([torch.sin(distances * rates), torch.cos(distances * rates)], -1).reshape(
        1, -1, size
    )


def _kept_mel_frames(encoder: Any) -> int:
    size = encoder.streaming_cfg.pre_encode_cache_size
    return int(size[1] if isinstance(size, list) else size)


def _export_encoder(encoder: _Encoder, folder: Path, *, is_int8: bool) -> None:
    batch = 2  # not 1: the tracer takes a one for a constant
    frames = encoder.kept_mel_frames + 2 * encoder.subsampling
    prompt = (torch.zeros(batch, dtype=torch.int64),) if encoder.is_prompted else ()
    _export(
        encoder,
        (torch.zeros(batch, encoder.mel_bands, frames), *encoder.empty_caches(batch), *prompt),
        folder / ENCODER,
        inputs={
            "mel": {0: "batch", 2: "mel_frames"},
            "attention": {0: "batch"},
            "convolution": {0: "batch"},
            "cached": {0: "batch"},
            **({"prompt": {0: "batch"}} if encoder.is_prompted else {}),
        },
        outputs={
            "heard": {0: "batch", 1: "frames"},
            "attention_after": {0: "batch"},
            "convolution_after": {0: "batch"},
            "cached_after": {0: "batch"},
        },
        is_int8=is_int8,
    )


def _export_predictor(model: Any, folder: Path) -> None:
    batch, lstm = 2, _lstm(model)
    state = torch.zeros(lstm.num_layers, batch, lstm.hidden_size)
    states = {"hidden": {1: "batch"}, "cell": {1: "batch"}}
    _export(
        _Predictor(model),
        (torch.zeros(batch, dtype=torch.int64), state, state.clone()),
        folder / PREDICTOR,
        inputs={"label": {0: "batch"}, **states},
        outputs={
            "said": {0: "batch"},
            "hidden_after": {1: "batch"},
            "cell_after": {1: "batch"},
        },
    )


def _export_joint(model: Any, folder: Path) -> None:
    batch, frames, size = 2, 3, model.joint.enc.out_features
    _export(
        _Joint(model),
        (torch.zeros(batch, frames, size), torch.zeros(batch, size)),
        folder / JOINT,
        inputs={"heard": {0: "batch", 1: "frames"}, "said": {0: "batch"}},
        outputs={"scores": {0: "batch", 1: "frames"}},
    )


def _export(
    module: nn.Module,
    examples: Sequence[Tensor],
    path: Path,
    *,
    inputs: dict[str, dict[int, str]],
    outputs: dict[str, dict[int, str]],
    is_int8: bool = False,
) -> None:
    """Trace `module` and write one graph, with a file of weights beside it where they are large."""
    import onnx

    with tempfile.TemporaryDirectory() as scratch:
        traced = Path(scratch) / "traced.onnx"
        torch.onnx.export(
            module.eval(),
            tuple(examples),
            str(traced),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=inputs | outputs,
            opset_version=OPSET,
            dynamo=False,
        )
        graph = onnx.load(str(traced))
        if is_int8:
            _quantise(graph.graph)
            graph.opset_import.append(onnx.helper.make_opsetid(ORT_DOMAIN, 1))
        is_large = sum(len(tensor.raw_data) for tensor in graph.graph.initializer) > EMBEDDED_BYTES
        onnx.save_model(
            graph,
            str(path),
            save_as_external_data=is_large,
            location=f"{path.stem}.weights",
        )


def _quantise(graph: Any) -> None:
    """Give the weights of the graph's matrix products one byte each and a scale for each block.

    ONNX Runtime's own dynamic quantisation would scale the whole batch by its loudest stream, so
    that streams would change each other's text; MatMulNBits scales each row for itself.
    """
    from onnx import helper, numpy_helper

    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        weight = tensors.get(node.input[1]) if node.op_type == "MatMul" else None
        if weight is None or len(weight.dims) != 2:
            continue
        rows, columns = weight.dims
        packed, scales = _in_blocks(numpy_helper.to_array(weight))
        names = (f"{weight.name}.int8", f"{weight.name}.scales")
        tensors[names[0]] = numpy_helper.from_array(packed, names[0])
        tensors[names[1]] = numpy_helper.from_array(scales, names[1])
        node.CopyFrom(
            helper.make_node(
                "MatMulNBits",
                [node.input[0], *names],
                list(node.output),
                domain=ORT_DOMAIN,
                K=rows,
                N=columns,
                bits=8,
                block_size=BLOCK_ROWS,
                accuracy_level=INT8_ACCURACY,
            )
        )
    used = {name for node in graph.node for name in node.input}
    del graph.initializer[:]
    graph.initializer.extend(tensor for name, tensor in tensors.items() if name in used)


def _in_blocks(weight: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """`weight` [rows, columns] as MatMulNBits wants it: bytes around 128 [columns, blocks,
    BLOCK_ROWS], padded with zeros, and scales [columns * blocks]."""
    rows, columns = weight.shape
    padded = np.pad(weight, ((0, -rows % BLOCK_ROWS), (0, 0)))
    blocks = padded.T.reshape(columns, -1, BLOCK_ROWS)
    scales = np.abs(blocks).max(axis=2) / 127
    # A block of zeros has any scale.
    scales[scales == 0] = 1
    packed = np.rint(blocks / scales[:, :, None]) + 128
    return packed.astype(np.uint8), scales.reshape(-1).astype(np.float32)


def _write_front_end(model: Any, folder: Path) -> None:
    """The window and the mel filters. Raises ModelError for a front end that `onnx.py` lacks."""
    features = model.preprocessor.featurizer
    is_known = (
        features.sample_rate == SAMPLE_RATE
        and not features.exact_pad
        and features.log
        and features.log_zero_guard_type == "add"
        and features.mag_power == 2.0
        and features.frame_splicing == 1
        and features.normalize in {None, "NA", "None"}
        and features.preemph is not None
    )
    if not is_known:
        raise ModelError("the model's front end is no plain log-mel spectrum at 16 kHz")
    np.savez(
        folder / FRONT_END,
        window=features.window.numpy().astype(np.float32),
        filters=features.fb[0].numpy().astype(np.float32),
    )


def _write_description(model: Any, decoder: str, pieces: list[str], folder: Path) -> None:
    encoder, features = model.encoder, model.preprocessor.featurizer
    languages = PromptLanguages.of(model)
    frame_samples = features.hop_length * encoder.subsampling_factor
    lengths = sorted({right + 1 for _, right in encoder.att_context_size_all})
    Description(
        decoder=decoder,
        pieces=tuple(pieces),
        frame_samples=frame_samples,
        hop_samples=features.hop_length,
        fft_samples=features.n_fft,
        kept_mel_frames=_kept_mel_frames(encoder),
        preemphasis=features.preemph,
        log_guard=float(features.log_zero_guard_value_fn(torch.zeros(1))),
        chunk_frames={frames * frame_samples * 1000 // SAMPLE_RATE: frames for frames in lengths},
        prompts={language: languages.prompt(language) for language in languages.languages},
        prompt_to_detect=languages.prompt(None),
        can_detect_language=languages.can_detect,
    ).write(folder / DESCRIPTION)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the tracer's warnings, of its own age and of shapes that all modes share."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
