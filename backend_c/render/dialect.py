"""Define the C dialects: what differs between OpenMP C, embedded C99 and CUDA, as strings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """Hold what a C dialect spells differently: headers, qualifiers, pragmas, parallel loops.

    ``pragmas`` maps the kind of a loop to the line before it. ``strided`` maps it to the start and
    the step of its variable where several workers share the iterations (a grid-stride loop).
    """

    name: str
    suffix: str
    includes: tuple[tuple[str, str], ...]  # headers, and the name for which each is needed
    prologue: str
    kernel: str  # the qualifiers and type of a kernel
    function: str  # the qualifiers of any other generated function
    pragmas: dict[str, str]
    strided: dict[str, tuple[str, str]]
    alignment: int = 64  # bytes, of constants: a cache line, and the widest vector
    has_entry: bool = True  # whether C calls the kernels; else the host launches them


# What takes gcc a tenth of a second, by what the names of its procedures begin with. Among them is
# the inner kernel of exact products of matrices, in vectors and without.
_WHERE_USED = (
    ("hlo_accumulator.h", "hlo_accumulator"),
    ("hlo_cholesky.h", "hlo_cholesky_"),
    ("hlo_complex_product.h", "hlo_multiply_c128("),
    ("hlo_triangular.h", "hlo_substitute_"),
    *((f"hlo_gemm_{t}.h", f"hlo_gemm_{t}") for t in ("f32", "f64", "bytes", "s16", "bf16")),
    *((f"hlo_factor_{t}.h", f"hlo_factor_{t}") for t in ("f32", "f64")),
    ("hlo_fft_fast.h", "hlo_fft_lanes"),
    ("hlo_half.h", "hlo_half_"),
    ("hlo_householder.h", "hlo_householder_"),
    ("hlo_interleaved.h", "HLO_INTERLEAVED_"),
    ("hlo_interleaved.h", "hlo_interleaved_"),
    ("hlo_lanes.h", "hlo_lanes_"),
    ("hlo_lu.h", "hlo_lu_"),
    ("hlo_sort.h", "hlo_sort_"),
    ("hlo_transpose.h", "hlo_transpose_"),
)

_TILE = ("hlo_tile.h", "hlo_tile")

# What the threads of a block do together.
_BLOCKS = (
    ("hlo_lines.h", "hlo_line_"),
    ("hlo_block_copy.h", "hlo_block_cop"),
    ("hlo_block_tile.h", "hlo_block_tile_"),
    ("hlo_block_mma.h", "hlo_block_mma_"),
    ("hlo_block_sort.h", "hlo_block_sort_"),
    ("hlo_block_select.h", "hlo_block_select_"),
    ("hlo_block_sums.h", "hlo_block_sums_"),
    ("hlo_block_fft.h", "hlo_block_fft_"),
    ("hlo_block_factor.h", "hlo_block_factor_"),
    ("hlo_block_substitute.h", "hlo_block_substitute_"),
)

OPENMP = Dialect(
    "openmp",
    ".c",
    (("hlo_kernels.h", ""), ("hlo_tile_vector.h", "hlo_tile"), *_WHERE_USED),
    "typedef _Bool hlo_pred;\n",
    "static void",
    "HLO_FUNCTION",
    {
        "parallel": "#pragma omp parallel for",
        "parallel lanes": "#pragma omp parallel for simd",
        "lanes": "#pragma omp simd",
    },
    {},
)

EMBEDDED = Dialect(
    "embedded",
    ".c",
    (("hlo_kernels.h", ""), _TILE, *_WHERE_USED, ("hlo_packed.h", "hlo_dots_")),
    "typedef _Bool hlo_pred;\n",
    "HLO_PROCEDURE void",  # a compiler that made one function of all would add up their stacks
    "HLO_FUNCTION",
    {},
    {},
    alignment=8,
)

CUDA = Dialect(
    "cuda",
    ".cu",
    (("hlo_kernels.h", ""), ("hlo_block.h", "hlo_block_"), *_BLOCKS, _TILE, *_WHERE_USED),
    "typedef bool hlo_pred;\n",
    'extern "C" __global__ void',
    "HLO_FUNCTION",
    {},
    {
        **dict.fromkeys(("parallel", "blocks", "warps"), ("blockIdx.x", "gridDim.x")),
        "lanes": ("threadIdx.x", "blockDim.x"),
        "parallel lanes": (
            "({type})blockIdx.x * blockDim.x + threadIdx.x",
            "({type})gridDim.x * blockDim.x",
        ),
    },
    has_entry=False,
)

DIALECTS = {dialect.name: dialect for dialect in (OPENMP, EMBEDDED, CUDA)}
