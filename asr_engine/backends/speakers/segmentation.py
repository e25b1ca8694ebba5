"""PyanNet, a network that hears which of up to three voices speak when, as an ONNX graph.

Source: Bredin, "pyannote.audio 2.1 speaker diarization pipeline" (2023), and Plaquet and Bredin,
"Powerset multi-class cross entropy loss for neural speaker diarization" (2023). The filters are
those of SincNet (Ravanelli and Bengio, 2018).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.audio import SAMPLE_RATE
from asr_engine.backends.speakers.graph import Graph

WINDOW_SAMPLES: Final = 10 * SAMPLE_RATE
"""What the network was trained to hear at once."""
FRAME_SAMPLES: Final = 270
"""Samples between two frames of its answer."""
FRAME_OFFSET_SAMPLES: Final = 495
"""The middle of what the first frame hears."""
VOICES: Final = 3
CLASSES: Final = ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
"""The voices that speak in each of the network's classes."""
LAYERS: Final = 4
HIDDEN: Final = 128
MIN_HZ: Final = 50.0
LEAK: Final = 0.01


def segmentation_network(weights: dict[str, NDArray[np.float32]]) -> bytes:
    """The serialised network: audio float32 [1, 1, samples] to scores [1, frames, 7]."""
    graph = Graph(weights)
    x = _instance_norm(graph, "input", "sincnet.wav_norm1d")
    x = graph.add("Conv", x, graph.constant("filters", _filters(weights)), strides=[10])
    x = graph.add("Abs", x)
    for number in range(3):
        if number:
            x = graph.convolution(x, f"sincnet.conv1d.{number}")
        x = graph.add("MaxPool", x, kernel_shape=[3], strides=[3])
        x = _instance_norm(graph, x, f"sincnet.norm1d.{number}")
        x = graph.add("LeakyRelu", x, alpha=LEAK)
    x = graph.add("Transpose", x, perm=[2, 0, 1])
    for layer in range(LAYERS):
        x = _lstm(graph, x, layer)
    x = graph.add("Transpose", x, perm=[1, 0, 2])
    for name in ("linear.0", "linear.1"):
        x = graph.add("LeakyRelu", _linear(graph, x, name), alpha=LEAK)
    x = _linear(graph, x, "classifier")
    return graph.model(
        input_shape=(1, 1, "samples"), output=x, output_shape=(1, "frames", len(CLASSES))
    )


def _instance_norm(graph: Graph, x: str, name: str) -> str:
    scale, shift = graph.weight(f"{name}.weight"), graph.weight(f"{name}.bias")
    return graph.add("InstanceNormalization", x, scale, shift, epsilon=1e-5)


def _linear(graph: Graph, x: str, name: str) -> str:
    matrix = graph.constant(f"{name}.matrix", graph.weights[f"{name}.weight"].T)
    return graph.add("Add", graph.add("MatMul", x, matrix), graph.weight(f"{name}.bias"))


def _lstm(graph: Graph, x: str, layer: int) -> str:
    """A layer over [frames, 1, features] in both directions."""

    def both(name: str) -> NDArray[np.float32]:
        return np.stack(
            [_reordered(graph.weights[f"lstm.{name}_l{layer}{way}"]) for way in ("", "_reverse")]
        )

    biases = np.concatenate([both("bias_ih"), both("bias_hh")], axis=1)
    attributes: dict[str, Any] = {"hidden_size": HIDDEN, "direction": "bidirectional"}
    x = graph.add(
        "LSTM",
        x,
        graph.constant(f"lstm.{layer}.input", both("weight_ih")),
        graph.constant(f"lstm.{layer}.recurrent", both("weight_hh")),
        graph.constant(f"lstm.{layer}.biases", biases),
        **attributes,
    )
    x = graph.add("Transpose", x, perm=[0, 2, 1, 3])
    return graph.add("Reshape", x, graph.integers(0, 0, -1))


def _reordered(gates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Torch keeps input, forget, cell, output; ONNX input, output, forget, cell."""
    into, forget, cell, out = np.split(gates, 4)
    return np.concatenate([into, out, forget, cell])


def _filters(weights: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Band-pass filters [80, 1, 251] of trained edges: an even and an odd one for each band."""
    name = "sincnet.conv1d.0.filterbank"
    window, times = weights[f"{name}.window_"], weights[f"{name}.n_"]
    low = MIN_HZ + np.abs(weights[f"{name}.low_hz_"])
    high = np.clip(low + MIN_HZ + np.abs(weights[f"{name}.band_hz_"]), MIN_HZ, SAMPLE_RATE / 2)
    band = 2 * (high - low)
    even = 2 * (np.sin(high @ times) - np.sin(low @ times)) / times * window
    odd = 2 * (np.cos(low @ times) - np.cos(high @ times)) / times * window
    evens = np.concatenate([even, band, even[:, ::-1]], axis=1) / band
    odds = np.concatenate([odd, np.zeros_like(band), -odd[:, ::-1]], axis=1) / band
    return np.concatenate([evens, odds])[:, None].astype(np.float32)
