"""Just enough to write a trained network down as an ONNX graph: nodes that name their outputs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

OPSET: Final = 17
IR_VERSION: Final = 10


class Graph:
    """A graph under construction over a set of named weights.

    A method adds a node and returns the name of its output; names of weights are those of the
    checkpoint.
    """

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        self.weights = weights
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node of `operator`; returns the name of its first output."""
        from onnx import helper

        stem = f"{operator}.{len(self._nodes)}"
        names = [stem, *(f"{stem}.{number}" for number in range(1, outputs))]
        self._nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return stem

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """A value that the graph holds, under `name`; returns the name."""
        from onnx import numpy_helper

        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(f"int{values}", np.array(values, np.int64))

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

    def convolution(self, x: str, name: str, **attributes: Any) -> str:
        """A convolution with `name`.weight and, where it has one, `name`.bias."""
        bias = [self.weight(f"{name}.bias")] if f"{name}.bias" in self.weights else []
        return self.add("Conv", x, self.weight(f"{name}.weight"), *bias, **attributes)

    def batch_norm(self, x: str, name: str) -> str:
        """Batch normalisation as trained; one without scale and shift has neither weight."""
        mean = self.weights[f"{name}.running_mean"]
        scale = self.weights.get(f"{name}.weight", np.ones_like(mean))
        shift = self.weights.get(f"{name}.bias", np.zeros_like(mean))
        return self.add(
            "BatchNormalization",
            x,
            self.constant(f"{name}.scale", scale),
            self.constant(f"{name}.shift", shift),
            self.weight(f"{name}.running_mean"),
            self.weight(f"{name}.running_var"),
            epsilon=1e-5,
        )

    def model(
        self,
        *,
        input_shape: tuple[str | int, ...],
        output: str,
        output_shape: tuple[str | int, ...],
    ) -> bytes:
        """The serialised model: float32 "input" to `output`."""
        from onnx import TensorProto, helper

        graph = helper.make_graph(
            self._nodes,
            "network",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, input_shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, output_shape)],
            initializer=list(self._constants.values()),
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        serialised: bytes = model.SerializeToString()
        return serialised
