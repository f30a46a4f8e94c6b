"""The custom calls that C is generated for, against the interpreter's."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
from hlo.errors import Unsupported

needs_c_compiler = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


@needs_c_compiler
def test_dynamic_sizes() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[6,4] parameter(0)
  n = s32[] parameter(1)
  m = s32[] constant(3)
  d = f32[<=6,<=4] custom-call(x, n, m), custom_call_target="SliceToDynamic"
  p = (f32[6,4], s32[], s32[]) custom-call(d), custom_call_target="PadToStatic"
  y = f32[<=6,<=4] custom-call(d), custom_call_target="Sharding"
  ROOT t = (f32[<=6,<=4], (f32[6,4], s32[], s32[])) tuple(y, p)
}
"""
    for size in (0, 2, 6):
        assert_same_bits(text, np.ones((6, 4), np.float32), np.int32(size))


@needs_c_compiler
def test_topk() -> None:
    text = """HloModule m
c {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GT
}
ENTRY e {
  x = f32[3,50] parameter(0)
  ROOT t = (f32[3,4], s32[3,4]) custom-call(x), custom_call_target="TopK", called_computations={c}
}
"""
    x = np.random.default_rng(0).integers(0, 9, (3, 50)).astype(np.float32)
    assert_same_bits(text, x)


@needs_c_compiler
@pytest.mark.parametrize("letter", "LU")
@pytest.mark.parametrize(("kind", "dtype"), [("s", np.float32), ("d", np.float64)])
def test_lapack(kind: str, dtype: type, letter: str) -> None:
    element_type = f"f{np.dtype(dtype).itemsize * 8}"
    code = ord(letter)
    text = f"""HloModule m
ENTRY e {{
  x = {element_type}[2,20,20] parameter(0)
  b = {element_type}[2,20,3] parameter(1)
  f = ({element_type}[2,20,20], s32[2]) custom-call(x), custom_call_target="lapack_{kind}potrf_ffi",
    backend_config={{uplo = {code} : ui8}}
  s = {element_type}[2,20,3] custom-call(x, b), custom_call_target="lapack_{kind}trsm_ffi",
    backend_config={{diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = {code} : ui8}}
  ROOT t = (({element_type}[2,20,20], s32[2]), {element_type}[2,20,3]) tuple(f, s)
}}
"""
    x = np.random.default_rng(1).standard_normal((2, 20, 20))
    x = x @ x.swapaxes(1, 2) + np.eye(20)
    x[1, 7, 7] = -2
    b = np.random.default_rng(2).standard_normal((2, 20, 3))
    assert_same_bits(text, x.astype(dtype), b.astype(dtype))


@needs_c_compiler
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_matrices_without_columns_have_a_factor(numerics: str) -> None:
    """The info of each is written: 0, not what memory has there."""
    text = """HloModule m
ENTRY e {
  x = f32[100,0,0] parameter(0)
  ROOT f = (f32[100,0,0], s32[100]) custom-call(x), custom_call_target="lapack_spotrf_ffi",
    backend_config={uplo = 76 : ui8}
}
"""
    run = backend_c.compile(hlo.parse(text), numerics=numerics)
    used = [np.full(100, 7, np.int32) for _ in range(9)]
    del used
    _, info = run(np.zeros((100, 0, 0), np.float32))
    assert not info.any()


def test_unknown_target() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[3] parameter(0)
  ROOT t = f32[3] custom-call(x), custom_call_target="magic"
}
"""
    with pytest.raises(Unsupported, match="'magic'; there is for .*TopK"):
        backend_c.emit(hlo.parse(text))
