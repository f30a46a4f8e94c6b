"""Batch normalisation in C: the interpreter's bits, for every type and feature dimension."""

import ml_dtypes
import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
# dims and feature_index
_CASES = (((3, 4, 5, 2), 2), ((700, 33), 1), ((33, 700), 0), ((5,), 0), ((0, 3), 1), ((4, 0), 1))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", _DTYPES)
def test_all_three(name: str) -> None:
    random = np.random.default_rng(0)
    lines, shapes, names, arrays = [], [], [], []
    for n, (dims, feature) in enumerate(_CASES if name == "f32" else _CASES[:2]):
        array = f"{name}[{','.join(map(str, dims))}]"
        vector = f"{name}[{dims[feature]}]"
        for kind, one in zip("xyabcd", (array, array, vector, vector, vector, vector)):
            lines.append(f"{kind}{n} = {one} parameter({len(arrays)})")
            size = dims if kind in "xy" else dims[feature]
            values = random.standard_normal(size)
            arrays.append((np.abs(values) if kind == "d" else values).astype(_DTYPES[name]))
        end = f"epsilon=0.01, feature_index={feature}"
        three = f"({array}, {vector}, {vector})"
        for kind, shape, operands in (
            ("training", three, f"x{n}, a{n}, b{n}"),
            ("inference", array, f"x{n}, a{n}, b{n}, c{n}, d{n}"),
            ("grad", three, f"x{n}, a{n}, c{n}, d{n}, y{n}"),
        ):
            lines.append(f"{kind}{n} = {shape} batch-norm-{kind}({operands}), {end}")
            shapes.append(shape)
            names.append(f"{kind}{n}")
    separator = "\n  "
    assert_same_bits(
        f"""HloModule m
ENTRY e {{
  {separator.join(lines)}
  ROOT t = ({", ".join(shapes)}) tuple({", ".join(names)})
}}
""",
        *arrays,
    )
