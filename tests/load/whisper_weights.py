"""A Whisper model of CTranslate2 as a checkpoint of openai-whisper: the same weights for both.

CTranslate2's converter renames and joins tensors (`ctranslate2.specs.whisper_spec`); here that is
undone. Its keys have no bias, which openai-whisper's do not have either.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

TYPES: Final = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
HEAD_STATES: Final = 64
NORMS: Final = {"gamma": "weight", "beta": "bias"}

Tensors = dict[str, np.ndarray[Any, Any]]


def read_tensors(path: Path) -> Tensors:
    """The variables of a `model.bin` that is not quantised. Raises ValueError for another."""
    with path.open("rb") as file:
        _, _, _, count = _number(file, "I"), _text(file), _number(file, "I"), _number(file, "I")
        tensors: Tensors = {}
        for _ in range(count):
            name = _text(file)
            shape = [_number(file, "I") for _ in range(_number(file, "B"))]
            kind, size = _number(file, "B"), _number(file, "I")
            data = np.frombuffer(file.read(size), TYPES[kind]).reshape(shape)
            if kind == 1 and shape:
                raise ValueError("the model is quantised")
            tensors[name] = data
        for _ in range(_number(file, "I")):
            alias, name = _text(file), _text(file)
            tensors[alias] = tensors[name]
    return tensors


def checkpoint(tensors: Tensors) -> dict[str, Any]:
    """`dims` and `model_state_dict` (numpy) as openai-whisper's `load_model` reads them."""
    state: Tensors = {}
    for side in ("encoder", "decoder"):
        layers = 1 + max(
            int(name.split("/")[1].removeprefix("layer_"))
            for name in tensors
            if name.startswith(f"{side}/layer_") and "norm" not in name.split("/")[1]
        )
        for layer in range(layers):
            _layer(tensors, f"{side}/layer_{layer}", f"{side}.blocks.{layer}", state)
        last = "ln_post" if side == "encoder" else "ln"
        _norm(tensors, f"{side}/layer_norm", f"{side}.{last}", state)
        state[f"{side}.positional_embedding"] = tensors[f"{side}/position_encodings/encodings"]
    for conv in ("conv1", "conv2"):
        for part in ("weight", "bias"):
            state[f"encoder.{conv}.{part}"] = tensors[f"encoder/{conv}/{part}"]
    state["decoder.token_embedding.weight"] = tensors["decoder/embeddings/weight"]
    audio_ctx, audio_state = state["encoder.positional_embedding"].shape
    text_ctx, text_state = state["decoder.positional_embedding"].shape
    dims = {
        "n_mels": state["encoder.conv1.weight"].shape[1],
        "n_audio_ctx": audio_ctx,
        "n_audio_state": audio_state,
        "n_audio_head": audio_state // HEAD_STATES,
        "n_audio_layer": _blocks(state, "encoder"),
        "n_vocab": len(state["decoder.token_embedding.weight"]),
        "n_text_ctx": text_ctx,
        "n_text_state": text_state,
        "n_text_head": text_state // HEAD_STATES,
        "n_text_layer": _blocks(state, "decoder"),
    }
    return {"dims": dims, "model_state_dict": state}


def _layer(tensors: Tensors, source: str, target: str, state: Tensors) -> None:
    attention = f"{source}/self_attention"
    _norm(tensors, f"{attention}/layer_norm", f"{target}.attn_ln", state)
    _split(tensors, f"{attention}/linear_0", f"{target}.attn", ("query", "key", "value"), state)
    _linear(tensors, f"{attention}/linear_1", f"{target}.attn.out", state)
    if f"{source}/attention/linear_0/weight" in tensors:
        cross = f"{source}/attention"
        _norm(tensors, f"{cross}/layer_norm", f"{target}.cross_attn_ln", state)
        _linear(tensors, f"{cross}/linear_0", f"{target}.cross_attn.query", state)
        _split(tensors, f"{cross}/linear_1", f"{target}.cross_attn", ("key", "value"), state)
        _linear(tensors, f"{cross}/linear_2", f"{target}.cross_attn.out", state)
    _norm(tensors, f"{source}/ffn/layer_norm", f"{target}.mlp_ln", state)
    _linear(tensors, f"{source}/ffn/linear_0", f"{target}.mlp.0", state)
    _linear(tensors, f"{source}/ffn/linear_1", f"{target}.mlp.2", state)


def _norm(tensors: Tensors, source: str, target: str, state: Tensors) -> None:
    for theirs, ours in NORMS.items():
        state[f"{target}.{ours}"] = tensors[f"{source}/{theirs}"]


def _linear(tensors: Tensors, source: str, target: str, state: Tensors) -> None:
    for part in ("weight", "bias"):
        state[f"{target}.{part}"] = tensors[f"{source}/{part}"]


def _split(
    tensors: Tensors, source: str, target: str, names: tuple[str, ...], state: Tensors
) -> None:
    weights = np.split(tensors[f"{source}/weight"], len(names))
    biases = np.split(tensors[f"{source}/bias"], len(names))
    for name, weight, bias in zip(names, weights, biases, strict=True):
        state[f"{target}.{name}.weight"] = weight
        if name != "key":
            state[f"{target}.{name}.bias"] = bias


def _blocks(state: Tensors, side: str) -> int:
    return 1 + max(int(name.split(".")[2]) for name in state if name.startswith(f"{side}.blocks."))


def _number(file: BinaryIO, kind: str) -> int:
    size = struct.calcsize(kind)
    return int(struct.unpack(f"<{kind}", file.read(size))[0])


def _text(file: BinaryIO) -> str:
    return file.read(_number(file, "H")).rstrip(b"\0").decode()
