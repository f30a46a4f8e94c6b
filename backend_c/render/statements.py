"""Render statements of the loop IR as text that is both C99 and C++, in a dialect."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from backend_c.ir.loop_ir import (
    INDICES,
    Address,
    Array,
    Assign,
    Barrier,
    Call,
    Constant,
    Expr,
    If,
    Kernel,
    Let,
    Load,
    LocalArray,
    Loop,
    Mutable,
    Pointer,
    Statement,
    Store,
    Variable,
    expressions,
    is_mutable,
    subexpressions,
    variables,
)
from backend_c.render.binding import ATOM, SUM, UNARY
from backend_c.render.c_types import array_type, loaded, memory_type, register_type, to_store
from backend_c.render.dialect import Dialect
from backend_c.render.eager_loads import chosen
from backend_c.render.operations import operand_binding, render_operation
from backend_c.render.shared_memory import dynamic_shared
from hlo.types import F64, ElementType

_INDENT = "    "
LAUNCH_BOUNDS = r"(?:__launch_bounds__\([\d, ]+\) )?"  # in the head of a kernel, as a pattern
_WORD = re.compile(r"\b[acrs]\d+\b")  # names of a kernel's arrays
_SHORT = 4  # iterations
_INLINE = 48  # a value used once is written where it is used, if its text is no longer than this


def kernel_text(kernel: Kernel, name: str, dialect: Dialect, body: type[Body] | None = None) -> str:
    """Render a kernel as a function of pointers: inputs, outputs, scratch, in order.

    ``body`` renders its statements, by default :class:`Body`.
    """
    parameters = [
        *(f"const {memory_type(a.element_type)} *HLO_RESTRICT {a.name}" for a in kernel.inputs),
        *(
            f"{memory_type(a.element_type)} *HLO_RESTRICT {a.name}"
            for a in (*kernel.outputs, *kernel.scratch)
        ),
    ]
    if kernel.uses_seed:
        parameters.append("hlo_seed *seed")
    lines = (body or Body)(dialect, kernel).block(kernel.body, 1)
    # Compilers are asked to warn of unused parameters, and a kernel may ignore an input's elements.
    used = set(_WORD.findall("\n".join(lines)))
    arrays = (*kernel.inputs, *kernel.outputs, *kernel.scratch)
    first = [f"{_INDENT}(void){a.name};" for a in arrays if a.name not in used]
    threads = block_size(kernel)
    # Two blocks share a multiprocessor: one computes while the other waits for memory.
    bound = f" __launch_bounds__({threads}, 2)" if threads else ""
    # nvcc then knows blockDim.x: a loop with an iteration for each thread is no loop.
    if threads:
        first.append(f"{_INDENT}HLO_REQUIRE_THREADS({threads});")
        lines = [line.replace("blockDim.x", f"HLO_THREADS({threads})") for line in lines]
    head = f"{dialect.kernel}{bound} {name}({', '.join(parameters) or 'void'}) {{"
    return "\n".join([head, *first, *lines, "}", ""])


def block_size(kernel: Kernel) -> int:
    """Return the number of threads per block that a kernel requires; 0 if any number will do."""
    return max((s.threads for s in kernel.body if isinstance(s, Loop)), default=0)


def constant_text(constant: Constant) -> str:
    """Render a number as C reads it, exactly."""
    kind, value = constant.type.kind, constant.value
    if constant.type in INDICES:
        return str(value)
    if kind == "pred":
        return "1" if value else "0"
    if kind == "complex":
        part = float(value.real), float(value.imag)
        texts = ", ".join(_float_text(p, constant.type.bits == 128) for p in part)
        return f"hlo_make_{constant.type}({texts})"
    if kind == "float":
        return _float_text(float(value), constant.type is F64)  # type: ignore[arg-type]
    return _integer_text(int(value), constant.type)  # type: ignore[arg-type]


def _float_text(value: float, double: bool) -> str:
    """Render a float: the shortest decimal that reads back as the same, or a NaN's bits."""
    width = "f64" if double else "f32"
    if math.isnan(value) or math.isinf(value):
        dtype = np.float64 if double else np.float32
        # INFINITY and NAN are macros of math.h, which generated C does without.
        bits = np.asarray(value, dtype).tobytes()[::-1].hex()
        return f"hlo_{width}_from_bits(0x{bits}{'u' if not double else 'ull'})"
    # repr is the shortest decimal that reads back as the same number; C reads as exactly.
    text = repr(value) if double else str(np.float32(value))
    if "." not in text and "e" not in text:
        text += ".0"
    text = text if double else f"{text}f"
    return f"({text})" if text.startswith("-") else text


def _integer_text(value: int, element_type: ElementType) -> str:
    """Render an integer with the suffix of its type."""
    suffix = ("ULL" if element_type.kind == "unsigned" else "LL") if element_type.bits == 64 else ""
    if element_type.name == "u32":
        suffix = "u"
    # C has no negative literals: the lowest value's magnitude would not fit the type.
    if value == -(2 ** (element_type.bits - 1)) and element_type.bits >= 32:
        return f"(-{-value - 1}{suffix} - 1)"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"


class Body:
    """Render the statements of one kernel; a value used once is folded into its use."""

    def __init__(self, dialect: Dialect, kernel: Kernel) -> None:
        self._dialect = dialect
        self._numerics = kernel.numerics
        self._dynamic = dynamic_shared(kernel)
        self._uses: Counter[str] = Counter()
        self._used_in_inner_block: set[str] = (
            set()
        )  # used in another block than where they are bound
        self.texts: dict[str, tuple[str, int]] = {}  # variables folded into their use
        self._chosen = set[str]()  # what selects choose from: evaluated before them if it loads
        self._loading = set[str]()  # variables folded into their use that load
        self._scan(kernel.body)

    def _scan(self, statements: Sequence[Statement]) -> None:
        """Count the uses of each variable, and note those used in a block other than their own."""
        here: set[str] = set()
        for statement in statements:
            names = [name for e in expressions(statement) for name in variables(e)]
            operands = (one for e in expressions(statement) for one in chosen(e))
            self._chosen.update(name for one in operands for name in variables(one))
            self._uses.update(names)
            self._used_in_inner_block.update(name for name in names if name not in here)
            match statement:
                case Let(variable, _):
                    here.add(variable.name)
                case Loop(_, _, _, body, _):
                    self._scan(body)
                case If(_, then, otherwise):
                    self._scan(then)
                    self._scan(otherwise)
                case _:
                    pass

    def block(self, statements: Sequence[Statement], depth: int) -> list[str]:
        """Render a block."""
        lines: list[str] = []
        for statement in statements:
            lines.extend(_INDENT * depth + line for line in self.statement(statement))
        return lines

    def statement(self, statement: Statement) -> list[str]:
        """Render a statement as lines."""
        match statement:
            case Let() | Mutable() | LocalArray():
                return self._declaration(statement)
            case Assign(variable, value):
                return [f"{variable.name} = {self.text(value)};"]
            case Store(array, offset, value):
                return [f"{self._element(array, offset)} = {self._stored(array, value)};"]
            case Barrier():
                return ["__syncthreads();"]
            case Call(function, arguments):
                return [f"{function}({', '.join(map(self._argument, arguments))});"]
            case If(condition, then, otherwise):
                lines = [f"if ({self.text(condition)}) {{", *self.block(then, 1)]
                if otherwise:
                    lines += ["} else {", *self.block(otherwise, 1)]
                return [*lines, "}"]
            case Loop():
                return self._loop(statement)

    def _declaration(self, statement: Let | Mutable | LocalArray) -> list[str]:
        """Render a declaration of a value, a mutable variable or a local array."""
        match statement:
            case Let(variable, value):
                return self._let(variable, value)
            case Mutable(variable, initial):
                start = "" if initial is None else f" = {self.text(initial)}"
                return [f"{register_type(variable.type)} {variable.name}{start};"]
            case LocalArray(array):
                # Aligned, so that neighbouring elements are read as one vector.
                kind, name = array_type(array), array.name
                if name in self._dynamic:
                    words = f"{kind}, {name}, {array.elements}, {self._dynamic[name]}"
                    return [f"HLO_DYNAMIC_SHARED({words});"]
                place = "__shared__ __align__(16) " if array.is_shared else ""
                return [f"{place}{kind} {name}[{array.elements}];"]

    def _let(self, variable: Variable, value: Expr) -> list[str]:
        """Render a let; if pure, short, and used once in its block, keep its text for the use."""
        text, binding = self.rendered(value)
        # A value used inside a loop below stays outside it: that is what it was bound there for.
        once = self._uses[variable.name] == 1 and variable.name not in self._used_in_inner_block
        loads = any(
            isinstance(part, Load) or (isinstance(part, Variable) and part.name in self._loading)
            for part in subexpressions(value)
        )
        # Folded into a select it would be a load under a condition (backend_c.render.eager_loads).
        is_eager = loads and variable.name in self._chosen and "lanes" in self._dialect.pragmas
        if once and len(text) <= _INLINE and _is_pure(value) and not is_eager:
            self.texts[variable.name] = text, binding
            self._loading.update([variable.name] if loads else [])
            return []
        return [f"const {register_type(variable.type)} {variable.name} = {text};"]

    def _loop(self, loop: Loop) -> list[str]:
        """Render a loop with its pragma."""
        name, extent = loop.variable.name, self.text(loop.extent)
        kind = register_type(loop.variable.type)
        start, step = (
            text.format(type=kind) for text in self._dialect.strided.get(loop.kind, ("0", ""))
        )
        advance = f"{name} += {step}" if step else f"++{name}"
        head = f"for ({kind} {name} = {start}; {name} < {extent}; {advance}) {{"
        pragma = self._dialect.pragmas.get(loop.kind)
        if loop.kind == "lanes" and not loop.sums and _is_short(loop.extent):
            pragma = None  # compilers write it out; a vector of part of its lanes takes longer
        lines = []
        if pragma:
            # OpenMP splits the sums over the lanes or threads and combines the parts: the loop says
            # that any order is right.
            sums = ", ".join(variable.name for variable in loop.sums)
            lines.append(pragma + (f" reduction({loop.operator} : {sums})" if sums else ""))
        return [*lines, head, *self.block(loop.body, 1), "}"]

    def _argument(self, argument: Expr | Pointer) -> str:
        """Render an argument of a runtime function."""
        match argument:
            case Pointer(array, offset):
                start = self._operand(offset, SUM)
                return array.name if start == "0" else f"{array.name} + {start}"
            case _:
                return self.text(argument)

    def _element(self, array: Array, offset: Expr) -> str:
        """Render an element of an array, or a read of a view's bytes."""
        if array.memory is not None:
            return f"hlo_read_{memory_type(array.element_type)}({array.name}, {self.text(offset)})"
        return f"{array.name}[{self.text(offset)}]"

    def _stored(self, array: Array, value: Expr) -> str:
        """Render a value as it is stored."""
        return to_store(array, self.text(value))

    def text(self, expression: Expr) -> str:
        """Render an expression."""
        return self.rendered(expression)[0]

    def _operand(self, expression: Expr, allowed: int = UNARY) -> str:
        """Render an expression that binds at least as tightly as ``allowed``."""
        text, binding = self.rendered(expression)
        return f"({text})" if binding > allowed else text

    def rendered(self, expression: Expr) -> tuple[str, int]:
        """Render an expression; return its text and how tightly that binds."""
        if isinstance(expression, Variable):
            return self.texts.get(expression.name, (expression.name, ATOM))
        if isinstance(expression, Constant):
            return constant_text(expression), ATOM
        if isinstance(expression, Load):
            array = expression.array
            return loaded(array, self._element(array, expression.offset)), ATOM
        if isinstance(expression, Address):
            return f"&{expression.variable.name}", UNARY
        operation, inner, result = expression
        types = [operand.type for operand in inner]
        texts = [
            self._operand(operand, operand_binding(operation, n, types[0]))
            for n, operand in enumerate(inner)
        ]
        return render_operation(operation, texts, types, result, self._numerics)


def _is_short(extent: Expr) -> bool:
    """Return whether a loop has too few iterations to fill a vector."""
    return isinstance(extent, Constant) and int(extent.value) < _SHORT  # type: ignore[arg-type]


def _is_pure(value: Expr) -> bool:
    """Return whether a value may be evaluated later than its let: it reads nothing mutable."""
    return not any(map(is_mutable, subexpressions(value)))
