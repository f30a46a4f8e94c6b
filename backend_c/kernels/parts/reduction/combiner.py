"""Inline a scalar computation (the reducer of a fold) into a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir.element import Element, scalar
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope
from hlo.types import ArrayShape
from hlo.walk import Callee

Combiner = Callee[Element | tuple[Element, ...]]


def apply_combiner(scope: Scope, to_apply: Combiner, arguments: Sequence[Expr]) -> list[Expr]:
    """Inline ``to_apply`` on values; return its results, each bound before any is used."""
    result = to_apply(*(scalar(ArrayShape(value.type), value) for value in arguments))
    parts = result if isinstance(result, tuple) else (result,)
    return [scope.bind(part.at()) for part in parts]
