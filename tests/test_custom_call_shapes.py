"""Custom calls of known targets with shapes or settings that make no sense to them: refused by the
interpreter and by C, which would write outside of its results, with a typed error."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import backend_c
import hlo
import interp
from hlo.custom_calls import MARKERS
from hlo.errors import Error, Unsupported
from hlo.types import (
    C64,
    F32,
    F64,
    S32,
    TOKEN,
    ArrayShape,
    Shape,
    TupleShape,
)
from interp.envelope.budget import XLA_CPU
from interp.envelope.evaluation import enclose
from interp.values import zeros

_TYPES = (F32, F64, S32, C64)
_TRSM = "diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8"


class _Call(NamedTuple):
    """A custom call of parameters."""

    target: str
    result: Shape
    operands: tuple[Shape, ...]
    config: str = ""

    @property
    def text(self) -> str:
        parameters = "".join(f"  x{n} = {s} parameter({n})\n" for n, s in enumerate(self.operands))
        names = ", ".join(f"x{n}" for n in range(len(self.operands)))
        config = f", backend_config={{{self.config}}}" if self.config else ""
        return (
            f"HloModule m\nENTRY e {{\n{parameters}  ROOT r = {self.result}"
            f' custom-call({names}), custom_call_target="{self.target}"{config}\n}}\n'
        )


def _f32(*dims: int) -> ArrayShape:
    return ArrayShape(F32, dims)


def _s32(*dims: int) -> ArrayShape:
    return ArrayShape(S32, dims)


def _tuple(*shapes: Shape) -> TupleShape:
    return TupleShape(shapes)


_CUT = replace(_f32(4, 2), dynamic=(True, True))
_PAIR = (_f32(3), _s32(2, 2))
# Each target of C with operands, results and settings that it takes.
_CALLS = (
    *(_Call(name, _f32(2, 3), (_f32(2, 3),)) for name in MARKERS),
    _Call("Sharding", _tuple(*_PAIR), _PAIR),
    _Call("Sharding", _tuple(*_PAIR), (_tuple(*_PAIR),)),
    _Call("Sharding", ArrayShape(TOKEN), (ArrayShape(TOKEN),)),
    _Call("TopK", _tuple(_f32(3, 2), _s32(3, 2)), (_f32(3, 4),)),
    _Call("PadToStatic", _tuple(_f32(4, 2), _s32(), _s32()), (_CUT,)),
    _Call("SliceToDynamic", _CUT, (_f32(4, 2), _s32(), _s32())),
    _Call("lapack_spotrf_ffi", _tuple(_f32(3, 2, 2), _s32(3)), (_f32(3, 2, 2),), "uplo = 76 : ui8"),
    _Call("lapack_strsm_ffi", _f32(3, 2), (_f32(3, 3), _f32(3, 2)), _TRSM),
    _Call("lapack_strsm_ffi", _f32(3, 2), (_f32(3, 3), _f32(3, 2), _f32()), _TRSM),
    _Call("lapack_sgetrf_ffi", _tuple(_f32(3, 2), _s32(2), _s32()), (_f32(3, 2),)),
    _Call("lapack_sgeqrf_ffi", _tuple(_f32(3, 2), _f32(2)), (_f32(3, 2),)),
    _Call("lapack_sorgqr_ffi", _f32(3, 2), (_f32(3, 2), _f32(2))),
)


def _ids(call: _Call) -> str:
    return f"{call.target} of {', '.join(map(str, call.operands))}"


def _evaluated(call: _Call) -> object:
    return interp.evaluate(hlo.parse(call.text), *map(zeros, call.operands))


def _taken(by: Callable[[_Call], object], call: _Call) -> bool:
    """Test whether a call is taken; a typed error means not, and any other escapes."""
    try:
        by(call)
    except Error:
        return False
    return True


def _emitted(call: _Call) -> object:
    return backend_c.emit(hlo.parse(call.text))


def _needs_scipy(call: _Call) -> bool:
    return any(name in call.target for name in ("getrf", "geqrf", "orgqr"))


@pytest.mark.parametrize("call", _CALLS, ids=_ids)
def test_fitting_calls_are_taken(call: _Call) -> None:
    _emitted(call)
    if importlib.util.find_spec("scipy") or not _needs_scipy(call):
        _evaluated(call)


@st.composite
def _changed_leaves(draw: st.DrawFn, shape: Shape) -> Shape:
    """Draw a shape that differs in one dimension, type, rank or bound of one array, or in the
    number of its elements."""
    if isinstance(shape, TupleShape):
        parts = list(shape.elements)
        kind = draw(st.sampled_from(("drop", "again", "change", "alone"))) if parts else "again"
        if kind == "alone":
            return parts[0]
        at = draw(st.integers(0, max(0, len(parts) - 1)))
        if kind == "change":
            parts[at] = draw(_changed_leaves(parts[at]))
        elif kind == "drop":
            del parts[at]
        else:
            parts.append(parts[at] if parts else _f32(1))
        return TupleShape(tuple(parts))
    kind = draw(st.sampled_from(("size", "type", "rank", "bound", "tuple", "token")))
    if kind == "tuple":
        return TupleShape((shape,))
    if kind == "token":
        return ArrayShape(TOKEN)
    if kind == "type" or not shape.element_type.is_array:
        return ArrayShape(draw(st.sampled_from(_TYPES)), shape.dims, shape.dynamic)
    if kind == "rank" or not shape.rank:
        dims = draw(st.sampled_from((shape.dims[1:], (*shape.dims, 2), (2, *shape.dims))))
        return ArrayShape(shape.element_type, dims)
    at = draw(st.integers(0, shape.rank - 1))
    if kind == "bound":
        dynamic = [d == at for d in range(shape.rank)] if not shape.dynamic else [False]
        return replace(shape, dynamic=tuple(dynamic) if any(dynamic) else ())
    dims = list(shape.dims)
    dims[at] = draw(st.sampled_from((0, 1, 2, 3, 9)))
    return replace(shape, dims=tuple(dims))


@st.composite
def _changed(draw: st.DrawFn) -> _Call:
    """Draw a call with one or two changes of its operands, result or settings."""
    call = draw(st.sampled_from(_CALLS))
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(("result", "operand", "count", "config")))
        operands = list(call.operands)
        at = draw(st.integers(0, max(0, len(operands) - 1)))
        if kind == "result":
            call = call._replace(result=draw(_changed_leaves(call.result)))
        elif kind == "config" and call.config:
            old = draw(st.sampled_from(("76", "78")))
            code = draw(st.sampled_from(("82", "65", "0", "1114112", "9" * 11, "7" * 5000, "x")))
            call = call._replace(config=call.config.replace(old, code, 1))
        elif kind == "operand" and operands:
            operands[at] = draw(_changed_leaves(operands[at]))
        elif draw(st.booleans()) and operands:
            del operands[at]
        else:
            operands.append(operands[at] if operands else _f32(2))
        call = call._replace(operands=tuple(operands))
    return call


@given(_changed())
def test_what_the_interpreter_refuses_is_not_emitted(call: _Call) -> None:
    if _needs_scipy(call) and not importlib.util.find_spec("scipy"):
        return
    if _taken(_emitted, call):
        assert _taken(_evaluated, call)
    else:
        _taken(_evaluated, call)


_MISFITS = (
    _Call("TopK", _tuple(_f32(2), _s32(2)), (_f32(),)),
    _Call("TopK", _tuple(_f32(2), _s32(1)), (_f32(4),)),
    _Call("TopK", _tuple(_f32(9), _s32(9)), (_f32(4),)),
    _Call("TopK", _tuple(_f32(5, 2), _s32(5, 2)), (_f32(3, 4),)),
    _Call("TopK", _tuple(_s32(2), _f32(2)), (_f32(4),)),
    _Call("TopK", _tuple(ArrayShape(C64, (2,)), _s32(2)), (ArrayShape(C64, (4,)),)),
    _Call("PadToStatic", _tuple(_f32(2), _s32()), (_f32(4),)),
    _Call("PadToStatic", _tuple(_f32(6), _s32()), (_f32(4),)),
    _Call("PadToStatic", _tuple(_f32(2, 2), _s32(), _s32()), (_f32(4),)),
    _Call("SliceToDynamic", _f32(4), (_f32(4), _s32(), _s32())),
    _Call("SliceToDynamic", _f32(4), (_f32(), _s32(2))),
    _Call("SliceToDynamic", _f32(3), (_f32(4), _s32())),
    _Call("SliceToDynamic", _f32(4), (_f32(4), _f32())),
    _Call("Sharding", _f32(2), (_f32(3000000),)),
    _Call("Sharding", _f32(8), (_f32(4),)),
    _Call("Sharding", _f32(4), (_s32(4),)),
    _Call("Sharding", _f32(2), (_f32(2), _f32(2))),
    _Call("Sharding", _f32(2), ()),
    _Call("lapack_spotrf_ffi", _tuple(_f32(2, 3), _s32()), (_f32(2, 3),), "uplo = 76"),
    _Call("lapack_spotrf_ffi", _tuple(_f32(2, 2), _s32()), (_f32(9, 2, 2),), "uplo = 76"),
    _Call("lapack_spotrf_ffi", _tuple(_f32(2, 2), _s32(3)), (_f32(2, 2),), "uplo = 76"),
    _Call("lapack_spotrf_ffi", _f32(2, 2), (_f32(2, 2),), "uplo = 76"),
    _Call("lapack_dpotrf_ffi", _tuple(_f32(2, 2), _s32()), (_f32(2, 2),), "uplo = 76"),
    _Call("lapack_strsm_ffi", _f32(3, 2), (_f32(2, 2), _f32(3, 3)), _TRSM),
    _Call("lapack_strsm_ffi", _f32(3, 2), (_f32(3, 3), _f32(3, 1000000)), _TRSM),
    _Call("lapack_strsm_ffi", _f32(3, 2), (_f32(2, 2), _f32(3, 2)), _TRSM),
    _Call("lapack_strsm_ffi", _f32(3, 2), (_f32(3, 3), _f32(3, 2), _f32(1)), _TRSM),
    _Call("lapack_strsm_ffi", _f32(3, 2), (_f32(3, 3), _f32(3, 2), _s32()), _TRSM),
    _Call("lapack_sorgqr_ffi", _f32(2, 2), (_f32(2, 2), ArrayShape(F64, (2,)))),
)


@pytest.mark.parametrize("call", _MISFITS, ids=_ids)
def test_what_does_not_fit_is_unsupported(call: _Call) -> None:
    with pytest.raises(Unsupported, match="does not give"):
        _evaluated(call)
    with pytest.raises(Unsupported, match="does not give"):
        _emitted(call)
    with pytest.raises(Unsupported, match="does not give"):
        enclose(hlo.parse(call.text), *map(zeros, call.operands), peer=XLA_CPU)


@pytest.mark.parametrize("code", ["0", "65", "1114112", "9" * 11, "7" * 5000])
@pytest.mark.parametrize("name", ["diag", "side", "trans_x", "uplo"])
def test_settings_of_no_letter_are_unsupported(name: str, code: str) -> None:
    config = _TRSM.replace(f"{name} = ", f"{name} = {code} : ui64, was = ")
    call = _Call("lapack_strsm_ffi", _f32(2, 2), (_f32(2, 2), _f32(2, 2)), config)
    for refuses in (_evaluated, _emitted):
        with pytest.raises(Unsupported, match=name):
            refuses(call)


@pytest.mark.parametrize("routine", ["syevd", "gehrd", "geev", "gees", "gesdd", "gtsv", "ormqr"])
@pytest.mark.parametrize("operands", [(), (_f32(2),), (_f32(2, 3),), (ArrayShape(TOKEN),)])
def test_operands_that_scipy_refuses(routine: str, operands: tuple[Shape, ...]) -> None:
    pytest.importorskip("scipy")
    config = (
        "mode = 86, uplo = 76, low = 1, high = 999999999, compute_left = 86, compute_right = 86"
    )
    target = f"lapack_s{routine}_ffi"
    call = _Call(target, _tuple(_f32(2, 2), _s32()), operands, f"{config}, sort = 78, left = true")
    assert not _taken(_evaluated, call)
