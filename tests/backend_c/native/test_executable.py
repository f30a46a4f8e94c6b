"""Executables check what they are given, and pass bytes to C and back unchanged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import backend_c
import hlo
from backend_c.native.cache import open_cache
from backend_c.native.executable import Executable
from backend_c.native.libraries import build
from backend_c.native.loaded_library import LoadedLibrary
from backend_c.native.marshalling import arguments
from backend_c.native.toolchain import find_compiler
from backend_c.render.translation_units import Program
from hlo.errors import ArgumentError, ToolchainError
from hlo.types import ELEMENT_TYPES, F32, F64, S32, TOKEN, ArrayShape, Shape, TupleShape, leaves

_ENTRY = """
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif
void hlo_entry(const void *const *arguments, void *const *results,
               const unsigned char *constants, unsigned char *workspace, uint64_t seed);
void hlo_entry(const void *const *arguments, void *const *results,
               const unsigned char *constants, unsigned char *workspace, uint64_t seed) {
    (void)arguments; (void)results; (void)constants; (void)workspace; (void)seed;
    BODY
}
"""


def _executable(
    directory: Path,
    body: str,
    parameters: Sequence[Shape],
    result: Shape,
    constants: bytes = b"",
    threads: int | None = None,
) -> Executable:
    source = {"unit_0.c": _ENTRY.replace("BODY", body)}
    flat = tuple(leaf for shape in parameters for leaf in leaves(shape))
    program = Program(source, flat, leaves(result), constants, 4096, {}, ())
    path = build(source, find_compiler(os.environ), open_cache(directory / "cache"))
    named = [(f"x{number}", shape) for number, shape in enumerate(parameters)]
    return Executable(LoadedLibrary(path), program, named, result, threads)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [n for n, t in ELEMENT_TYPES.items() if t.is_array])
def test_arrays_pass_unchanged(name: str, tmp_path: Path) -> None:
    element_type = ELEMENT_TYPES[name]
    shape = ArrayShape(element_type, (5, 3))
    size = 15 * element_type.numpy.itemsize
    copy = _executable(tmp_path, f"memcpy(results[0], arguments[0], {size});", [shape], shape)
    array = np.arange(30).reshape(6, 5).T[:, ::2].astype(element_type.numpy)  # not contiguous
    result = copy(array)
    assert result.dtype == array.dtype
    assert result.tobytes() == array.tobytes()


def test_sub_byte_integers_are_extended(tmp_path: Path) -> None:
    shape = ArrayShape(ELEMENT_TYPES["s4"], (2,))
    body = "const int8_t *x = arguments[0]; int32_t *r = results[0]; r[0] = x[0]; r[1] = x[1];"
    widen = _executable(tmp_path, body, [shape], ArrayShape(S32, (2,)))
    assert widen(np.array([-8, 7], ml_dtypes.int4)).tolist() == [-8, 7]


def test_sub_byte_constants_are_extended() -> None:
    text = "HloModule m\nENTRY e { c = s4[3] constant({-1, 2, -8})\n ROOT y = s32[3] convert(c) }"
    widen = backend_c.compile(hlo.parse(text))
    assert widen().tolist() == [-1, 2, -8]


def test_tuples_tokens_and_scalars(tmp_path: Path) -> None:
    scalar, vector = ArrayShape(F32), ArrayShape(F32, (2,))
    parameters = [TupleShape((scalar, TupleShape((ArrayShape(TOKEN), vector)))), ArrayShape(TOKEN)]
    result = TupleShape((vector, TupleShape(()), ArrayShape(TOKEN), scalar))
    body = "memcpy(results[0], arguments[1], 8); memcpy(results[1], arguments[0], 4);"
    swap = _executable(tmp_path, body, parameters, result)
    one, two = np.float32(3), np.array([1, 2], np.float32)
    first, empty, token, last = swap((one, (None, two)), None)
    assert first.tolist() == [1, 2]
    assert (empty, token) == ((), None)
    assert (last.shape, last.item()) == ((), 3.0)


def test_constants_workspace_and_seed(tmp_path: Path) -> None:
    body = """uint64_t *r = results[0];
    memcpy(r, constants, 8);
    r[1] = seed;
    r[2] = (uint64_t)workspace % 64 + (uint64_t)constants % 64;
    memset(workspace, 1, 4096);"""
    shape = ArrayShape(ELEMENT_TYPES["u64"], (3,))
    run = _executable(tmp_path, body, [], shape, constants=(7).to_bytes(8, "little"))
    assert run(seed=5).tolist() == [7, 5, 0]
    assert run(seed=-1).tolist() == [7, 2**64 - 1, 0]


def test_bounded_arrays_have_their_actual_size(tmp_path: Path) -> None:
    shape = ArrayShape(S32, (4, 3), (True, False))
    body = """const int32_t *x = arguments[0], *sizes = arguments[1];
    int32_t *r = results[0], *result_sizes = results[1];
    for (int i = 0; i < 12; ++i) r[i] = x[i] + 1;
    result_sizes[0] = sizes[0] - 1;
    result_sizes[1] = sizes[1];"""
    shrink = _executable(tmp_path, body, [shape], shape)
    array = np.arange(9, dtype=np.int32).reshape(3, 3)
    assert shrink(array).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert shrink(np.arange(12, dtype=np.int32).reshape(4, 3)).shape == (3, 3)
    with pytest.raises(ArgumentError, match=r"expected s32\[<=4,3\], got int32\[5,3\]"):
        shrink(np.zeros((5, 3), np.int32))


def test_threads(tmp_path: Path) -> None:
    body = "int32_t *r = results[0]; *r = 1;\n#ifdef _OPENMP\n*r = omp_get_max_threads();\n#endif"
    default = _executable(tmp_path, body, [], ArrayShape(S32))
    before = default().item()
    for threads in (1, 3):
        chosen = _executable(tmp_path, body, [], ArrayShape(S32), threads=threads)
        assert chosen().item() in (threads, 1)  # 1: a compiler without OpenMP
    assert default().item() == before
    with pytest.raises(ArgumentError, match="seed='a': a whole number"):
        default(seed="a")  # type: ignore[arg-type]
    # An OpenMP runtime would end the process, where it has no memory for so many.
    for threads in (0, -1, 10**9, "a"):
        with pytest.raises(ArgumentError, match=f"threads={threads!r}: from 1 to"):
            _executable(tmp_path, body, [], ArrayShape(S32), threads=threads)
        with pytest.raises(ArgumentError, match=f"threads={threads!r}: from 1 to"):
            default.in_threads(threads)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((), "2 arguments are expected, 0 were given"),
        ((np.zeros(2, np.float32), None), r"parameter 1 \(x1\): expected \(.*\), got None"),
        ((np.zeros(2), (np.int32(0),)), r"parameter 0 \(x0\): expected f32\[2\], got float64\[2\]"),
        ((np.zeros(3, np.float32), (np.int32(0),)), r"expected f32\[2\], got float32\[3\]"),
        (((np.zeros(2, np.float32),), (np.int32(0),)), r"got \(float32\[2\]\)"),
        ((np.zeros(2, np.float32), np.int32(0)), r"parameter 1 \(x1\): .* got int32\[\]"),
        (([[1], [2, 3]], (np.int32(0),)), r"parameter 0 \(x0\): expected f32\[2\], got list"),
    ],
)
def test_bad_arguments(arrays: tuple[object, ...], message: str, tmp_path: Path) -> None:
    parameters = [ArrayShape(F32, (2,)), TupleShape((ArrayShape(S32),))]
    run = _executable(tmp_path, "", parameters, TupleShape(()))
    with pytest.raises(ArgumentError, match=message):
        run(*arrays)


def test_what_is_no_library_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_bytes(b"text")
    with pytest.raises(ToolchainError, match="cannot load"):
        LoadedLibrary(tmp_path / "x.so")


def test_a_library_is_closed_with_its_executable(tmp_path: Path) -> None:
    """A library is closed with its executable, but not the OpenMP runtime, in which idle threads
    wait."""
    loop = "for (int i = 0; i < 64; ++i) ((float *)results[0])[i] = i;"
    body = f'_Pragma("omp parallel for") {loop}'
    shape = ArrayShape(F32, (64,))

    def loaded() -> set[str]:
        mapped = Path("/proc/self/maps").read_text().split()
        return {path for path in mapped if path.endswith(".so") and str(tmp_path) in path}

    for threads in (None, 2):
        run = _executable(tmp_path, body, [], shape, threads=threads)
        call = run.bind()
        assert np.array_equal(run(), np.arange(64)) and len(loaded()) == 1
        del run
        assert np.array_equal(call(), np.arange(64)) and len(loaded()) == 1
        del call
        assert not loaded()


def test_arrays_need_not_be_aligned() -> None:
    """C takes elements to be: a view of bytes that is not is copied."""
    raw = np.zeros(8 * 100 + 1, np.uint8)
    raw[1:] = np.arange(100.0).view(np.uint8)
    unaligned = raw[1:].view(np.float64)
    assert not unaligned.flags.aligned
    text = "HloModule m\nENTRY e { x = f64[100] parameter(0)\n ROOT y = f64[100] negate(x) }"
    executable = backend_c.compile(hlo.parse(text))
    assert np.array_equal(executable(unaligned), -np.arange(100.0))
    (memory,) = arguments([("x", ArrayShape(F64, (100,)))], [unaligned])
    assert memory.data.flags.aligned
