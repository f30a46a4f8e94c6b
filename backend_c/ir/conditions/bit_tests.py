"""Write tests of one bit as comparisons of signed numbers.

Of an integer that is known to be 0 or 1, ``x & 1`` or ``x >> 31``, gcc makes ``_Bool`` of ``== 1``
by truncation, for which it has no vectors: a loop with such a test stays scalar, and a count of
bytes takes nine times as long. It leaves ``> 0`` and ``< 1`` of signed numbers as they are. By the
same token ``x % 2 == 0`` is first ``(x & 1) == 0``.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir.integer_ranges import compared
from backend_c.ir.loop_ir import INDICES, Apply, Constant, Expr, Statement, every, parts
from backend_c.ir.loop_rewriting import with_operands
from backend_c.ir.ranged_rewriting import RangedRewriting
from hlo.types import PRED, S8, S16, S32, S64, ElementType

_SIGNED = {8: S8, 16: S16, 32: S32, 64: S64}
_BIT = 0, 1  # the range of a bit


def with_bit_tests(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements that compare signed integers where they test a bit."""
    return _BitTests().body(body) if any(map(_may_test, parts(every(body)))) else tuple(body)


def _may_test(part: Expr) -> bool:
    """Return whether an expression compares integers with a number, or makes a truth value of one:
    in most kernels none does, and all else takes longer to look at."""
    if type(part) is not Apply or part.type is not PRED:
        return False
    operation, (one, *rest), _ = part
    if operation == "convert":
        return _is_integer(one.type)
    is_compared = operation.startswith("compare-") and _is_integer(one.type)
    return is_compared and Constant in (type(one), *map(type, rest))


class _BitTests(RangedRewriting):
    """Rewrite the comparisons and conversions of one kernel."""

    def rewritten(self, value: Expr) -> Expr:
        """Return an expression with its tests of bits rewritten."""
        value = with_operands(value, self.rewritten)
        match value:
            case Apply(operation, (one, Constant(_, number)), _) if operation.startswith(
                "compare-"
            ) and _is_integer(one.type):
                return self._tested(value, operation, one, int(number))  # type: ignore[arg-type]
            case Apply(operation, (Constant(_, number), other), _) if operation.startswith(
                "compare-"
            ) and _is_integer(other.type):
                turned = operation.translate(_TURNED)
                return self._tested(value, turned, other, int(number))  # type: ignore[arg-type]
            case Apply("convert", (one,), kind) if kind is PRED and _is_integer(one.type):
                return self._tested(value, "compare-NE", one, 0)
            case _:
                return value

    def _tested(self, comparison: Expr, operation: str, one: Expr, number: int) -> Expr:
        """Return ``one`` compared with a number; ``comparison``, which does that, if it is no test
        of a bit."""
        bit = self._bit(one, number)
        if bit is None:
            return comparison
        zero, other = (compared(operation, (end, end), (number, number)) for end in _BIT)
        if zero == other:
            return comparison
        signed = _signed(bit)
        is_one = other == (1, 1)
        order = "GT" if is_one else "LT"
        return Apply(f"compare-{order}", (signed, Constant(signed.type, int(not is_one))), PRED)

    def _bit(self, value: Expr, number: int) -> Expr | None:
        """Return the bit that a comparison of a value with a number tests; None if it is none."""
        match self.ranges.definition(value):
            case Apply("remainder", (dividend, Constant(kind, 2)), _) if number == 0:
                return Apply("and", (dividend, Constant(kind, 1)), kind)
            # Of a truth value gcc makes the truth value, and of what is loaded it knows nothing.
            case Apply("convert", (source,), _) if source.type is PRED:
                return None
            case Apply() if self.ranges.of(value) == _BIT:
                return value
            case _:
                return None


_TURNED = str.maketrans("LG", "GL")  # a < b is b > a


def _is_integer(element_type: ElementType) -> bool:
    return element_type.is_integer and element_type not in INDICES


def _signed(bit: Expr) -> Expr:
    """Return a bit as a number of a signed type that holds 1."""
    signed = _SIGNED[max(bit.type.bits, 8)]
    return bit if bit.type is signed else Apply("convert", (bit,), signed)
