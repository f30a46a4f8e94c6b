"""List the processors to generate code for, and detect which of them this one is compatible with.

A compiler says what a processor has (``-march=znver3 -dM -E``), Linux what this one has. Only
instruction sets that a compiler uses by itself are compared; those that need intrinsics in C (AES,
SHA, SSE4A, AMX…) may be missing here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from backend_c.native.toolchain import run

# As -march= names them, and as configurations do: levels of the x86-64 psABI, then models, which
# differ in what is quick on them, so that compilers choose other instructions.
PROCESSORS: dict[str, str] = {
    "x86-64": "SSE2",
    "x86-64-v2": "SSE4",
    "x86-64-v3": "AVX2",
    "x86-64-v4": "AVX-512",
    "native": "native",
    "haswell": "haswell",
    "skylake": "skylake",
    "znver2": "znver2",
    "znver3": "znver3",
    "znver4": "znver4",
    "icelake-server": "icelake-server",
    "sapphirerapids": "sapphirerapids",
}

# Macros of compilers, and the same in /proc/cpuinfo.
_FEATURES: dict[str, str] = {
    "__SSE3__": "pni",
    "__SSSE3__": "ssse3",
    "__SSE4_1__": "sse4_1",
    "__SSE4_2__": "sse4_2",
    "__POPCNT__": "popcnt",
    "__LZCNT__": "abm",
    "__MOVBE__": "movbe",
    "__BMI__": "bmi1",
    "__BMI2__": "bmi2",
    "__TBM__": "tbm",
    "__GFNI__": "gfni",
    "__AVX__": "avx",
    "__AVX2__": "avx2",
    "__F16C__": "f16c",
    "__FMA__": "fma",
    "__FMA4__": "fma4",
    "__XOP__": "xop",
    "__AVXVNNI__": "avx_vnni",
    "__AVX512F__": "avx512f",
    "__AVX512VL__": "avx512vl",
    "__AVX512CD__": "avx512cd",
    "__AVX512BW__": "avx512bw",
    "__AVX512DQ__": "avx512dq",
    "__AVX512IFMA__": "avx512ifma",
    "__AVX512VBMI__": "avx512vbmi",
    "__AVX512VBMI2__": "avx512_vbmi2",
    "__AVX512VNNI__": "avx512_vnni",
    "__AVX512BITALG__": "avx512_bitalg",
    "__AVX512VPOPCNTDQ__": "avx512_vpopcntdq",
    "__AVX512BF16__": "avx512_bf16",
    "__AVX512FP16__": "avx512_fp16",
}


@cache
def own_features() -> frozenset[str]:
    """Read this processor's instruction sets from Linux; empty on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", errors="replace")
    except OSError:
        return frozenset()
    lines = (line.partition(":") for line in text.splitlines())
    found = (words.split() for key, _, words in lines if key.strip() == "flags")
    return frozenset(next(found, ()))


def refusal(command: Sequence[str], processor: str, features: frozenset[str] | None = None) -> str:
    """Return why code for ``processor`` cannot run on one with ``features`` (None: this one); "" if
    it can."""
    told = run([*command, f"-march={processor}", "-dM", "-E", "-x", "c", os.devnull])
    if told.returncode:
        return f"{Path(command[0]).name} does not know -march={processor}"
    macros = {line.split()[1] for line in told.stdout.splitlines() if line.startswith("#define ")}
    needed = {feature for macro, feature in _FEATURES.items() if macro in macros}
    lacking = sorted(needed - (own_features() if features is None else features))
    return f"the processor has no {', '.join(lacking)}" if lacking else ""
