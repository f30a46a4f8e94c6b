"""Write the f32 networks of examples/tiny as ONNX, and as the C that emx-onnx-cgen makes of that.

    python -m selftest.microcontrollers.onnx_peer FILE… DIR
    python -m selftest.microcontrollers --numerics fast --instead DIR FILE…

Images are NHWC in the program and NCHW in ONNX: behind the argument stands a transposition. Needs
``pip install '.[microcontrollers]'``. Instructions that those networks do not have are a KeyError.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import hlo
from hlo.attributes import Window
from hlo.literal import Literal
from hlo.module import Instruction, Module

_OPSET, _IR = 13, 8
_FIRST_FEATURE = (0, 3, 1, 2)  # NHWC, or features, height, width and depth of weights: to NCHW
_SAME = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "exponential": "Exp",
    "maximum": "Max",
}
_REDUCTIONS = {"sum": "ReduceSum", "most": "ReduceMax"}


# Neither a heap nor files: all temporaries are on the stack, all weights in the C.
_COMPILE = (
    *("emx-onnx-cgen", "compile", "--restrict-arrays"),
    *("--large-temp-threshold", "0", "--large-weight-threshold", "0"),
)
_RUN = """
int module_run(const float *in_input, float *out, void *workspace);
int module_run(const float *in_input, float *out, void *workspace) {
    (void)workspace;
    model((const void *)in_input, (void *)out);
    return 0;
}
"""


class OnnxNetwork:
    """Translates one module, instruction by instruction; values keep their names."""

    def __init__(self, module: Module) -> None:
        self._instructions = {i.name: i for i in module.entry.instructions}
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, np.ndarray] = {}
        self._module = module

    def model(self) -> onnx.ModelProto:
        """Make the ONNX model."""
        for instruction in self._module.entry.instructions:
            _COLUMN.get(instruction.opcode, OnnxNetwork._elementwise)(self, instruction)
        (parameter,), root = self._module.entry.parameters, self._module.entry.root_instruction
        graph = helper.make_graph(
            self._nodes,
            self._module.name,
            [_described(parameter)],
            [_described(root)],
            [numpy_helper.from_array(value, name) for name, value in self._constants.items()],
        )
        opset = helper.make_opsetid("", _OPSET)
        made = helper.make_model(graph, opset_imports=[opset], ir_version=_IR)
        onnx.checker.check_model(made)
        return made

    def _node(self, opcode: str, operands: list[str], result: str, **attributes: object) -> None:
        self._nodes.append(helper.make_node(opcode, operands, [result], **attributes))

    def _constant(self, name: str, value: np.ndarray) -> str:
        self._constants[name] = np.ascontiguousarray(value)
        return name

    def _literal(self, name: str) -> np.ndarray:
        """Return the value of a constant."""
        literal = self._instructions[name].attributes["literal"]
        assert isinstance(literal, Literal)
        return np.asarray(literal.value, np.float32)

    def _elementwise(self, i: Instruction) -> None:
        self._node(_SAME[i.opcode], [self._value(name) for name in i.operands], i.name)

    def _value(self, name: str) -> str:
        """Return an operand's name in ONNX; of a parameter that is an image, its transposed
        copy's."""
        is_image = self._instructions[name].opcode == "parameter" and self._rank(name) == 4
        return f"{name}.nchw" if is_image else name

    def _rank(self, name: str) -> int:
        return len(self._instructions[name].shape.dims)  # type: ignore[union-attr]

    def _parameter(self, i: Instruction) -> None:
        if self._rank(i.name) == 4:
            self._node("Transpose", [i.name], self._value(i.name), perm=_FIRST_FEATURE)

    def _broadcast(self, i: Instruction) -> None:
        """Translate a broadcast: ONNX broadcasts operands itself, so constants are only reshaped,
        and reduced values keep a dimension of size 1."""
        (operand,), dimensions = i.operands, i.attributes["dimensions"]
        if self._instructions[operand].opcode == "constant":
            value = self._literal(operand)
            shape = (-1, 1, 1) if dimensions == (3,) else value.shape
            self._constant(i.name, value.reshape(shape))
        else:  # what is reduced keeps a dimension of 1
            self._node("Identity", [operand], i.name)

    def _reduce(self, i: Instruction) -> None:
        """Translate a reduction: spatial dimensions are dropped, the features of a row kept with
        size 1."""
        is_image = i.attributes["dimensions"] == (1, 2)
        axes, opcode = [2, 3] if is_image else [1], _REDUCTIONS[str(i.attributes["to_apply"])]
        operand, keep = self._value(i.operands[0]), int(not is_image)
        if opcode == "ReduceSum":  # whose axes are an operand from version 13 on
            listed = self._constant(f"{i.name}.axes", np.array(axes, np.int64))
            self._node(opcode, [operand, listed], i.name, keepdims=keep)
        else:
            self._node(opcode, [operand], i.name, axes=axes, keepdims=keep)

    def _dot(self, i: Instruction) -> None:
        weights = self._constant(f"{i.name}.weights", self._literal(i.operands[1]).T)
        self._node("MatMul", [i.operands[0], weights], i.name)

    def _convolution(self, i: Instruction) -> None:
        weights = self._literal(i.operands[1]).transpose(_FIRST_FEATURE)
        window = i.attributes["window"]
        assert isinstance(window, Window)
        taps = window.dimensions
        self._node(
            "Conv",
            [self._value(i.operands[0]), self._constant(f"{i.name}.weights", weights)],
            i.name,
            kernel_shape=[d.size for d in taps],
            strides=[d.stride for d in taps],
            pads=[*(d.padding_low for d in taps), *(d.padding_high for d in taps)],
            group=i.attributes.get("feature_group_count", 1),
        )


def _described(i: Instruction) -> onnx.ValueInfoProto:
    dims = i.shape.dims  # type: ignore[union-attr]
    return helper.make_tensor_value_info(i.name, TensorProto.FLOAT, dims)


_COLUMN: Mapping[str, Callable[[OnnxNetwork, Instruction], None]] = {
    "parameter": OnnxNetwork._parameter,
    "constant": lambda network, i: None,  # written where it is read
    "broadcast": OnnxNetwork._broadcast,
    "reduce": OnnxNetwork._reduce,
    "dot": OnnxNetwork._dot,
    "convolution": OnnxNetwork._convolution,
}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("directory", type=Path, metavar="DIR")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    for file in options.files:
        path = options.directory / f"{file.name.removesuffix('.hlo')}.onnx"
        onnx.save(OnnxNetwork(hlo.parse(file.read_text("utf-8"))).model(), path)
        code = path.with_suffix(".c")
        subprocess.run([*_COMPILE, path, code], check=True)
        code.write_text(code.read_text("utf-8") + _RUN, "utf-8")


if __name__ == "__main__":
    main()
