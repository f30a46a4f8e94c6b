"""What differs between OpenMP C, embedded C99 and CUDA: a few strings each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """``loops`` maps the kind of a loop to the lines before it; ``strided`` maps it to the start
    and the step of its variable where several workers share the iterations."""

    name: str
    suffix: str
    prologue: str
    kernel: str  # what stands before a kernel's name
    function: str  # before a generated function's name
    pragmas: dict[str, str]
    strided: dict[str, tuple[str, str]]
    single: str  # the condition under which one worker stores what all computed, or ""
    barrier: str  # what makes stores of all lanes visible to all, or ""


OPENMP = Dialect(
    "openmp",
    ".c",
    "typedef _Bool hlo_pred;\n",
    "static void",
    "HLO_FUNCTION",
    {
        "parallel": "#pragma omp parallel for",
        "parallel lanes": "#pragma omp parallel for simd",
        "lanes": "#pragma omp simd",
    },
    {},
    "",
    "",
)

EMBEDDED = Dialect(
    "embedded",
    ".c",
    "typedef _Bool hlo_pred;\n",
    "static void",
    "HLO_FUNCTION",
    {},
    {},
    "",
    "",
)

CUDA = Dialect(
    "cuda",
    ".cu",
    "typedef bool hlo_pred;\n",
    'extern "C" __global__ void',
    "HLO_FUNCTION",
    {},
    {
        "parallel": ("blockIdx.x", "gridDim.x"),
        "lanes": ("threadIdx.x", "blockDim.x"),
        "parallel lanes": (
            "(int64_t)blockIdx.x * blockDim.x + threadIdx.x",
            "(int64_t)gridDim.x * blockDim.x",
        ),
    },
    "threadIdx.x == 0",
    "__syncthreads();",
)

DIALECTS = {dialect.name: dialect for dialect in (OPENMP, EMBEDDED, CUDA)}
