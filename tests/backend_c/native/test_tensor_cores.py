"""Matrix instructions in software are products, by the fragments that the PTX ISA gives lanes."""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler

from backend_c.cuda.geometry import Geometry
from backend_c.cuda.host_plan import CopyBytes, HostPlan, LaunchKernel, Operand
from backend_c.lower.plan import Origin
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_emulation import (
    Emulated,
    EmulatedLibrary,
    Schedule,
    build_driver,
    build_emulated,
)
from backend_c.native.toolchain import known_compiler
from backend_c.render.translation_units import Place
from hlo.types import ArrayShape, element_type_of
from hlo.values import Array

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

# The rows and columns of element i of a lane's fragments, as the PTX ISA writes them.
_FLOATS = """
    for (int i = 0; i < 8; ++i) { /* A, 16 x 16 */
        const int row = i < 2 || (i >= 4 && i < 6) ? groupID : groupID + 8;
        const int col = threadID * 2 + (i & 1) + (i < 4 ? 0 : 8);
        put(a, i, lhs[row * 16 + col]);
    }
    for (int i = 0; i < 4; ++i) { /* B, 16 x 8 */
        const int row = threadID * 2 + (i & 1) + (i < 2 ? 0 : 8);
        put(b, i, rhs[row * 8 + groupID]);
    }
"""
_BYTES = """
    for (int i = 0; i < 16; ++i) { /* A, 16 x 32 */
        const int row = i < 4 || (i >= 8 && i < 12) ? groupID : groupID + 8;
        const int col = threadID * 4 + (i & 3) + (i < 8 ? 0 : 16);
        put(a, i, lhs[row * 32 + col]);
    }
    for (int i = 0; i < 8; ++i) { /* B, 32 x 8 */
        const int row = threadID * 4 + (i & 3) + (i < 4 ? 0 : 16);
        put(b, i, rhs[row * 8 + groupID]);
    }
"""
# The instruction, the C types of factors and sums, and the NumPy types of both factors.
CASES = (
    ("bf16", "uint16_t", "float", ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    ("f16", "uint16_t", "float", np.float16, np.float16),
    ("ss", "uint8_t", "int32_t", np.int8, np.int8),
    ("su", "uint8_t", "int32_t", np.int8, np.uint8),
    ("us", "uint8_t", "int32_t", np.uint8, np.int8),
    ("uu", "uint8_t", "int32_t", np.uint8, np.uint8),
)


def _kernel(number: int, name: str, factor: str, total: str) -> str:
    parameters = f"const {factor} *lhs, const {factor} *rhs, {total} *sums"
    return f"""
extern "C" __global__ void kernel_{number}({parameters}) {{
    const int lane = threadIdx.x % 32, groupID = lane >> 2, threadID = lane % 4;
    const auto put = [](uint32_t *words, int n, {factor} value) HLO_UNCHECKED {{
        memcpy(({factor} *)words + n, &value, sizeof value);
    }};
    uint32_t a[4], b[2];
    {total} c[4];
    {_FLOATS if total == "float" else _BYTES}
    for (int i = 0; i < 4; ++i) {{ /* C and D, 16 x 8 */
        c[i] = sums[(i < 2 ? groupID : groupID + 8) * 8 + threadID * 2 + (i & 1)];
    }}
    hlo_mma_{name}(c, a, b);
    for (int i = 0; i < 4; ++i) {{
        sums[(i < 2 ? groupID : groupID + 8) * 8 + threadID * 2 + (i & 1)] = c[i];
    }}
}}
"""


# Four matrices of 8 x 8 elements of 16 bits: a lane gets row groupID, columns 2 threadID + 0 and 1.
_MATRICES = """
extern "C" __global__ void kernel_matrices(const uint16_t *from, uint16_t *to) {
    __shared__ __align__(16) uint16_t rows[256];
    const int lane = threadIdx.x % 32, groupID = lane >> 2, threadID = lane % 4;
    uint32_t words[2][4];
    for (int n = lane; n < 256; n += 32) rows[n] = from[n];
    __syncthreads();
    hlo_load_matrices(words[0], rows + 8 * lane);
    hlo_load_transposed(words[1], rows + 8 * lane);
    for (int n = 0; n < 8; ++n) {
        for (int half = 0; half < 2; ++half) {
            to[64 * n + 8 * groupID + 2 * threadID + half] =
                (uint16_t)(words[n / 4][n % 4] >> 16 * half);
        }
    }
}
"""


@pytest.fixture(scope="module")
def library() -> EmulatedLibrary:
    text = "".join([
        '#include "hlo_kernels.h"\n#include "hlo_block_mma.h"\n',
        *(_kernel(n, *case[:3]) for n, case in enumerate(CASES)),
        _MATRICES,
    ])  # fmt: skip
    cache = open_cache(default_directory(os.environ))
    compiler = known_compiler(os.environ, cache)
    path = build_emulated({"tensor.cu": text}, compiler, cache)
    return EmulatedLibrary(path, build_driver(compiler, cache))


def call(library: EmulatedLibrary, name: str, given: list[Array], result: Array) -> Array:
    """Run a kernel on one warp; its last operand has what ``result`` had before."""
    shapes = [_shape(array) for array in (*given, result)]
    places = [Place("arguments", n) for n in range(len(given))]
    made = Place("workspace", 0)
    operands = [
        Operand(f"a{n}", place, "", array.size, is_written=place is made)
        for n, (place, array) in enumerate(zip([*places, made], (*given, result), strict=True))
    ]
    origin = Origin(instruction="%matrix")
    launch = LaunchKernel(0, name, tuple(operands), "block", Geometry(1, 32), origin)
    before = CopyBytes(Place("arguments", len(given)), made, result.nbytes)
    after = CopyBytes(made, Place("results", 0), result.nbytes)
    steps = (before, launch, after)
    size = -(-result.nbytes // 64) * 64
    host = HostPlan(steps, tuple(shapes), (shapes[-1],), b"", size, uses_seed=False)
    parameters = [(f"a{n}", shape) for n, shape in enumerate(shapes)]
    program = Emulated(library, host, parameters, shapes[-1], {})
    schedule = Schedule(threads=32, blocks=1, seed=5)
    return np.asarray(program(*given, result, schedule=schedule))


def _shape(array: Array) -> ArrayShape:
    element_type = element_type_of(array.dtype)
    assert element_type is not None
    return ArrayShape(element_type, array.shape)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_mma_is_a_product(library: EmulatedLibrary, number: int) -> None:
    _, _, total, left, right = CASES[number]
    steps = 16 if total == "float" else 32
    generator = np.random.default_rng(number)
    # Small integers, whose sums are exact in every type, of the sign that the type has.
    lhs = generator.integers(0 if left is np.uint8 else -9, 9, (16, steps)).astype(left)
    rhs = generator.integers(0 if right is np.uint8 else -9, 9, (steps, 8)).astype(right)
    sums = generator.integers(-99, 99, (16, 8)).astype(np.float32 if total == "float" else np.int32)
    wanted = lhs.astype(np.int32) @ rhs.astype(np.int32) + sums.astype(np.int32)
    assert np.array_equal(call(library, f"kernel_{number}", [lhs, rhs], sums), wanted)


def test_ldmatrix_reads_rows_or_columns(library: EmulatedLibrary) -> None:
    given, result = np.arange(256, dtype=np.uint16), np.zeros(512, np.uint16)
    result = call(library, "kernel_matrices", [given], result)
    matrices = given.reshape(4, 8, 8)
    assert np.array_equal(result[:256].reshape(4, 8, 8), matrices)
    assert np.array_equal(result[256:].reshape(4, 8, 8), matrices.transpose(0, 2, 1))
