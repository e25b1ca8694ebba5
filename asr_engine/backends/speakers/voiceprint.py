"""CAM++, a network that turns a stretch of speech into a voiceprint, as an ONNX graph.

Source: Wang et al., "CAM++: A Fast and Efficient Network for Speaker Verification Using
Context-Aware Masking" (2023), in the size that 3D-Speaker published for Chinese and English.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asr_engine.backends.speakers.graph import Graph

FEATURES: Final = 80
SIZE: Final = 192
"""Values of a voiceprint."""
BLOCKS: Final = ((12, 1), (24, 2), (16, 2))
"""Layers and dilation of each densely connected block."""
CONTEXT_FRAMES: Final = 100
"""Frames (of 20 ms) whose mean is a layer's local context."""


def voiceprint_network(weights: dict[str, NDArray[np.float32]]) -> bytes:
    """The serialised network: features float32 [1, frames, 80] to a voiceprint [1, 192]."""
    graph = Graph(weights)
    x = _front(graph, graph.add("Transpose", "input", perm=[0, 2, 1]))
    x = graph.convolution(x, "xvector.tdnn.linear", strides=[2], pads=[2, 2])
    x = _activated(graph, x, "xvector.tdnn.nonlinear.batchnorm")
    for number, (layers, dilation) in enumerate(BLOCKS, start=1):
        for layer in range(1, layers + 1):
            name = f"xvector.block{number}.tdnnd{layer}"
            x = graph.add("Concat", x, _layer(graph, x, name, dilation), axis=1)
        x = _activated(graph, x, f"xvector.transit{number}.nonlinear.batchnorm")
        x = graph.convolution(x, f"xvector.transit{number}.linear")
    x = _activated(graph, x, "xvector.out_nonlinear.batchnorm")
    x = graph.convolution(_statistics(graph, x), "xvector.dense.linear")
    x = graph.add("Squeeze", x, graph.integers(-1))
    x = graph.batch_norm(x, "xvector.dense.nonlinear.batchnorm")
    return graph.model(input_shape=(1, "frames", FEATURES), output=x, output_shape=(1, SIZE))


def _activated(graph: Graph, x: str, name: str) -> str:
    return graph.add("Relu", graph.batch_norm(x, name))


def _front(graph: Graph, x: str) -> str:
    """Two-dimensional convolutions over [1, 80, frames], which end as [1, 320, frames]."""
    near: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    x = graph.add("Unsqueeze", x, graph.integers(1))
    x = _activated(graph, graph.convolution(x, "head.conv1", **near), "head.bn1")
    for name in ("head.layer1.0", "head.layer1.1", "head.layer2.0", "head.layer2.1"):
        stride: dict[str, Any] = {"strides": [2 if name.endswith(".0") else 1, 1]}
        y = graph.convolution(x, f"{name}.conv1", **near, **stride)
        y = _activated(graph, y, f"{name}.bn1")
        y = graph.batch_norm(graph.convolution(y, f"{name}.conv2", **near), f"{name}.bn2")
        if f"{name}.shortcut.0.weight" in graph.weights:
            x = graph.convolution(x, f"{name}.shortcut.0", **stride)
            x = graph.batch_norm(x, f"{name}.shortcut.1")
        x = graph.add("Relu", graph.add("Add", y, x))
    x = graph.convolution(x, "head.conv2", **near, strides=[2, 1])
    x = _activated(graph, x, "head.bn2")
    return graph.add("Reshape", x, graph.integers(1, 4 * FEATURES, -1))


def _layer(graph: Graph, x: str, name: str, dilation: int) -> str:
    """A layer whose local convolution is masked by what the context says."""
    x = _activated(graph, x, f"{name}.nonlinear1.batchnorm")
    x = graph.convolution(x, f"{name}.linear1")
    x = _activated(graph, x, f"{name}.nonlinear2.batchnorm")
    local = graph.convolution(
        x, f"{name}.cam_layer.linear_local", pads=[dilation] * 2, dilations=[dilation]
    )
    overall = graph.add("ReduceMean", x, axes=[-1], keepdims=1)
    context = graph.add("Add", overall, _nearby_mean(graph, x))
    mask = graph.add("Relu", graph.convolution(context, f"{name}.cam_layer.linear1"))
    mask = graph.add("Sigmoid", graph.convolution(mask, f"{name}.cam_layer.linear2"))
    return graph.add("Mul", local, mask)


def _nearby_mean(graph: Graph, x: str) -> str:
    """The mean of each run of CONTEXT_FRAMES frames, at each of its frames.

    The last run is short: zeros fill it up, and the mean of a row of ones that is filled up alike
    corrects for them.
    """
    frames = graph.add("Slice", graph.add("Shape", x), *map(graph.integers, (2, 3)))
    runs = graph.add(
        "Div",
        graph.add("Add", frames, graph.integers(CONTEXT_FRAMES - 1)),
        graph.integers(CONTEXT_FRAMES),
    )
    missing = graph.add("Sub", graph.add("Mul", runs, graph.integers(CONTEXT_FRAMES)), frames)
    pads = graph.add("Concat", graph.integers(0, 0, 0, 0, 0), missing, axis=0)
    pool: dict[str, Any] = {"kernel_shape": [CONTEXT_FRAMES], "strides": [CONTEXT_FRAMES]}
    means = graph.add("AveragePool", graph.add("Pad", x, pads), **pool)
    ones = graph.add("Expand", graph.constant("one", np.ones((1, 1, 1), np.float32)), frames)
    shares = graph.add("AveragePool", graph.add("Pad", ones, pads), **pool)
    means = graph.add("Unsqueeze", graph.add("Div", means, shares), graph.integers(-1))
    spread = graph.add("Expand", means, graph.integers(1, 1, 1, CONTEXT_FRAMES))
    spread = graph.add("Reshape", spread, graph.integers(0, 0, -1))
    return graph.add("Slice", spread, graph.integers(0), frames, graph.integers(2))


def _statistics(graph: Graph, x: str) -> str:
    """Mean and unbiased deviation over time, [1, 1024, 1]."""
    count = graph.add("Cast", graph.add("Size", graph.add("ReduceMean", x, axes=[1])), to=1)
    mean = graph.add("ReduceMean", x, axes=[-1], keepdims=1)
    apart = graph.add("Sub", x, mean)
    power = graph.add("ReduceSum", graph.add("Mul", apart, apart), graph.integers(-1), keepdims=1)
    others = graph.add("Sub", count, graph.constant("1.0", np.array(1.0, np.float32)))
    deviation = graph.add("Sqrt", graph.add("Div", power, others))
    return graph.add("Concat", mean, deviation, axis=1)
