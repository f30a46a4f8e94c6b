"""The elementary functions that a translation unit calls, printed from hlo.elementary."""

from __future__ import annotations

import re

from backend_c.dialect import Dialect
from backend_c.elementary_machine import CMachine, Value, function_text
from hlo import elementary

_RUNTIME = ("sqrt", "sqrt_f64")  # IEEE's own operation: runtime/hlo_float.h has it
_CALL = re.compile(r"\bhlo_(\w+)\(")


def definitions(body: str, dialect: Dialect) -> str:
    """The functions ``hlo_NAME`` of doubles that ``body`` calls, in order of first use."""
    called = dict.fromkeys(match[1] for match in _CALL.finditer(body))
    names = [name for name in called if name in elementary.FUNCTIONS]
    return "\n".join(_function(name, dialect) for name in names if name not in _RUNTIME)


def _function(name: str, dialect: Dialect) -> str:
    def sequence(*operands: Value) -> Value:
        return elementary.evaluate(name, CMachine(), *operands)

    arity = elementary.FUNCTIONS[name].arity
    return function_text(f"hlo_{name}", dialect.function, arity, sequence)
