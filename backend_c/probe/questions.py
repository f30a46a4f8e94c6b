"""Generate the test program: one HLO module of some two hundred independent parts, a kernel each.

The extents go around vectors of 16, 32 and 64 bytes, since what compilers get wrong is mostly how
they pack, unpack and shuffle, and where a loop over vectors ends. Types take turns: each operation
meets a few, each type meets many, as every question costs a compiler 20 ms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, product
from typing import NamedTuple

_EXTENTS = tuple(n + d for n in (16, 32, 48, 64, 128) for d in (0, 1, -1))
_INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
_FLOATS = ("f32", "f64", "bf16", "f16")
_NARROW = ("bf16", "f16", "f8e4m3fn", "f8e5m2", "f4e2m1fn", "s4", "u4")


class Question(NamedTuple):
    """Hold a small program: instructions, of which the last is the result, and parameter shapes.

    Instructions name the ones before them ``%0, %1…``, and the parameters ``$0, $1…``.
    """

    name: str
    parameters: tuple[str, ...]
    instructions: tuple[str, ...]


def questions() -> Iterator[Question]:
    """Yield all questions, always in the same order."""
    yield from _conversions()
    yield from _bits()
    yield from _arithmetic()
    yield from _roundings()
    yield from _comparisons()
    yield from _moves()
    yield from _divided_indices()
    yield from _reductions()
    yield from _masked_rows()
    yield from _truncations()


def text(asked: Sequence[Question]) -> str:
    """Render the module whose results are those of all questions, in order."""
    lines, results, shapes, parameters = list[str](), list[str](), list[str](), 0
    for n, question in enumerate(asked):
        names: dict[str, str] = {}
        for k, shape in enumerate(question.parameters):
            names[f"${k}"] = f"p{n}.{k}"
            lines.append(f"  p{n}.{k} = {shape} parameter({parameters})")
            parameters += 1
        for k, instruction in enumerate(question.instructions):
            for name, full in names.items():
                instruction = instruction.replace(name, full)
            names[f"%{k}"] = f"i{n}.{k}"
            lines.append(f"  i{n}.{k} = {instruction}")
        results.append(names[f"%{len(question.instructions) - 1}"])
        shapes.append(question.instructions[-1].split(" ", 1)[0])
    root = f"  ROOT all = ({', '.join(shapes)}) tuple({', '.join(results)})"
    return "\n".join(["HloModule probe", *_COMBINERS, "ENTRY main {", *lines, root, "}", ""])


def _conversions() -> Iterator[Question]:
    """Convert between types as registers hold them, each to three others and from three; others to
    and from f32, and those of 16 bits from what f32 does not hold."""
    types = ("pred", *_INTEGERS, "f32", "f64")
    pairs = [(s, types[(n + d) % len(types)]) for n, s in enumerate(types) for d in (1, 4, 6)]
    pairs += [pair for t in _NARROW for pair in ((t, "f32"), ("f32", t))]
    pairs += [("f64", "bf16"), ("f64", "f16"), ("u64", "f16"), ("s32", "bf16")]
    for (source, target), n in zip(pairs, cycle(_EXTENTS)):
        if source[1:] != target[1:]:  # s8 and u8 are the same bits
            made = f"{target}[{n}] convert($0)"
            yield Question(f"convert {source} to {target}", (f"{source}[{n}]",), (made,))


def _bits() -> Iterator[Question]:
    """Read values as the bits of other types: of the same width, split, and joined."""
    same = (("f32", "s32"), ("u64", "f64"), ("bf16", "u16"), ("s16", "f16"), ("u8", "f8e5m2"))
    for (source, target), n in zip(same, cycle(_EXTENTS)):
        made = f"{target}[{n}] bitcast-convert($0)"
        yield Question(f"bits of {source} as {target}", (f"{source}[{n}]",), (made,))
    parts = (
        *(("f32", "u8", 4), ("u64", "s8", 8), ("s32", "u16", 2), ("f64", "u32", 2)),
        *(("u16", "u4", 4), ("u32", "s4", 8), ("u8", "u4", 2)),
    )
    for wide, narrow, count in parts:
        yield Question(
            f"{narrow} parts of {wide}",
            (f"{wide}[4,12]",),
            (
                f"{wide}[4,12] add($0, $0)",
                f"{narrow}[4,12,{count}] bitcast-convert(%0)",
                f"{narrow}[4,{12 * count}] reshape(%1)",
                f"{narrow}[4,{12 * count}] add(%2, %2)",
            ),
        )
        yield Question(
            f"{wide} of parts of {narrow}",
            (f"{narrow}[33,{count}]",),
            (f"{wide}[33] bitcast-convert($0)",),
        )


# In two types each, and in one.
_ON_INTEGERS = (
    "add multiply divide remainder shift-left shift-right-arithmetic minimum maximum",
    "subtract and or xor shift-right-logical not negate abs sign popcnt count-leading-zeros",
)
_ON_FLOATS = (
    "add subtract multiply divide minimum maximum sqrt",
    "negate abs sign floor ceil round-nearest-even round-nearest-afz",
)
_UNARY = (
    "not negate abs sign popcnt count-leading-zeros floor ceil round-nearest-even"
    " round-nearest-afz sqrt exponential tanh log"
)
_FUNCTIONS = (("exponential", "f32"), ("tanh", "bf16"), ("log", "f32"))


def _arithmetic() -> Iterator[Question]:
    """Compute each operation in one type or two, which take turns."""
    signed, unsigned = cycle(("s8", "s32", "s64", "s16")), cycle(("u64", "u16", "u8", "u32"))
    others, floats = cycle(("f64", "bf16", "f16")), cycle(("bf16", "f32", "f16", "f64"))
    rows = [(op, next(types)) for op in _ON_INTEGERS[0].split() for types in (signed, unsigned)]
    rows += [(op, next(signed)) for op in _ON_INTEGERS[1].split()]
    rows += [(op, t) for op in _ON_FLOATS[0].split() for t in ("f32", next(others))]
    rows += [(op, next(floats)) for op in _ON_FLOATS[1].split()]
    for (opcode, t), n in zip([*rows, *_FUNCTIONS], cycle(_EXTENTS)):
        operands = ("$0",) if opcode in _UNARY.split() else ("$0", "$1")
        made = f"{t}[{n}] {opcode}({', '.join(operands)})"
        yield Question(f"{opcode} of {t}", (f"{t}[{n}]",) * len(operands), (made,))


def _roundings() -> Iterator[Question]:
    """Round each operation of two: no fused multiply-add, no reciprocal instead of a division, no
    terms that cancel, no rounding left out. Products of integers need all digits and more."""
    for t, digits, more, n in (("f32", "s16", "s32", 65), ("f64", "s32", "s64", 33)):
        x = f"{t}[{n}]"
        factors = (f"{x} convert($0)", f"{x} convert($1)", f"{x} multiply(%0, %1)")
        steps: tuple[str, ...] = (*factors, f"{x} convert($2)", f"{x} add(%2, %3)")
        given = (f"{digits}[{n}]", f"{digits}[{n}]", f"{more}[{n}]")
        yield Question(f"multiply and add of {t}", given, steps)
        c = f"c{2 * int(t[1:])}"
        z = f"{c}[{n}]"
        parts = tuple(f"{x} convert(${k})" for k in range(4))
        factors = (f"{z} complex(%0, %1)", f"{z} complex(%2, %3)", f"{z} multiply(%4, %5)")
        steps = (*parts, *factors, f"{x} real(%6)")
        yield Question(f"real part of multiply of {c}", (f"{digits}[{n}]",) * 4, steps)
    for t, n in (("f32", 65), ("f64", 33), ("bf16", 47)):
        x = f"{t}[{n}]"
        steps = (f"{x} broadcast($1), dimensions={{}}", f"{x} divide($0, %0)")
        yield Question(f"divide {t} by a scalar", (x, f"{t}[]"), steps)
        steps = (f"{x} add($0, $1)", f"{x} subtract(%0, $1)")
        yield Question(f"add and subtract of {t}", (x, x), steps)
    steps = ("f32[65] convert($0)", "f64[65] convert(%0)")
    yield Question("f64 by way of f32", ("f64[65]",), steps)


def _comparisons() -> Iterator[Question]:
    """Make masks of one width that choose values of another."""
    types, others = (*_INTEGERS, *_FLOATS), cycle(("u8", "s64", "f32", "bf16", "s16"))
    rows = zip(cycle(("EQ", "LT", "GE", "NE", "GT")), types)
    for (direction, t), other, n in zip(rows, others, cycle(_EXTENTS)):
        compared = f"pred[{n}] compare($0, $1), direction={direction}"
        chosen = f"{other}[{n}] select(%0, $2, $3)"
        shapes = (f"{t}[{n}]", f"{t}[{n}]", f"{other}[{n}]", f"{other}[{n}]")
        yield Question(f"select {other} by {direction} of {t}", shapes, (compared, chosen))
    for t, n in zip(_FLOATS, _EXTENTS):
        yield Question(f"is-finite of {t}", (f"{t}[{n}]",), (f"pred[{n}] is-finite($0)",))
        clamped = f"{t}[{n}] clamp($0, $1, $2)"
        yield Question(f"clamp of {t}", (f"{t}[{n}]",) * 3, (clamped,))


def _moves() -> Iterator[Question]:
    """Read memory of each width at another index, in every second way."""
    shapes = (("u8", 33), ("u8", 64), ("s16", 47), ("f32", 32), ("f32", 65), ("u64", 17))
    for turn, (t, n) in enumerate(shapes):
        x = f"{t}[4,{n}]"
        rows = {
            "reverse": f"{x} reverse($0), dimensions={{1}}",
            "every second": f"{t}[4,{n // 2}] slice($0), slice={{[0:4],[1:{n // 2 * 2}:2]}}",
            "every third": f"{t}[4,{n // 3}] slice($0), slice={{[0:4],[0:{n // 3 * 3 - 2}:3]}}",
            "transpose": f"{t}[{n},4] transpose($0), dimensions={{1,0}}",
            "pad": f"{t}[4,{n + 5}] pad($0, $1), padding=0_0x2_3",
            "pad between": f"{t}[4,{2 * n - 1}] pad($0, $1), padding=0_0x0_0_1",
            "concatenate": f"{t}[4,{2 * n}] concatenate($0, $0), dimensions={{1}}",
            "dynamic-slice": f"{t}[3,{n - 2}] dynamic-slice($0, $2, $2),"
            f" dynamic_slice_sizes={{3,{n - 2}}}",
            "gather": f"{t}[4,15] gather($0, $3), offset_dims={{0}}, collapsed_slice_dims={{1}},"
            " start_index_map={1}, index_vector_dim=1, slice_sizes={4,1}",
        }
        for name, instruction in [*rows.items()][turn % 2 :: 2]:
            yield Question(f"{name} of {x}", (x, f"{t}[]", "s32[]", "s16[15]"), (instruction,))


def _divided_indices() -> Iterator[Question]:
    """Repeat elements, repeat rows, and take elements of rows in turn, in several widths at a time:
    loads at i / c and i % c, by loops over whole rows and, where those are cut, over parts.

    The first types, of 32 bits, are those that gcc 12 gathers wrongly: they meet all repetitions.
    """
    types = (("u32", "u8"), ("f32", "f32"), ("u16", "s64"), ("u8", "s16"), ("f64", "f32"))
    rows = ((2, 48), (3, 48), (4, 64), (8, 64), (4, 96))
    for (turn, (t, narrow)), (row, (c, n)) in product(enumerate(types), enumerate(rows)):
        is_turn = (turn + row) % 2 == 0
        k = n // c
        ways = {
            "repeat": (f"{t}[4,{k}]", f"{t}[4,{k},{c}] broadcast($0), dimensions={{0,1}}"),
            "tile": (f"{t}[4,{k}]", f"{t}[4,{c},{k}] broadcast($0), dimensions={{0,2}}"),
            "in turn": (
                f"{t}[{c},4,{k}]",
                f"{t}[4,{k},{c}] transpose($0), dimensions={{1,2,0}}",
            ),
        }
        for name, (given, moved) in ways.items():
            if name != "repeat" and n == 64 or not (is_turn or name == "repeat" and turn < 2):
                continue
            steps = (moved, f"{t}[4,{n}] reshape(%0)", f"{narrow}[4,{n}] convert(%1)")
            yield Question(f"{name} {c} {t} as {narrow}[4,{n}]", (given,), steps)
            if c == 8:
                cut = f"{narrow}[4,{n - 1}] slice(%2), slice={{[0:4],[1:{n}]}}"
                question = f"{name} {c} {t} as {narrow}[4,{n - 1}], cut"
                yield Question(question, (given,), (*steps, cut))


_COMBINED = (
    ("add", "s32"), ("add", "u8"), ("add", "f32"), ("add", "f64"),
    ("maximum", "f32"), ("maximum", "s8"), ("minimum", "u16"), ("minimum", "f64"), ("and", "u64"),
    ("or", "u8"), ("xor", "s16"), ("multiply", "s64"),
)  # fmt: skip
_COMBINERS = tuple(
    f"{opcode}_{t} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n"
    f"  ROOT r = {t}[] {opcode}(a, b)\n}}"
    for opcode, t in _COMBINED
)


def _reductions() -> Iterator[Question]:
    """Reduce along rows, some along columns."""
    along = [(opcode, t, 1, "rows", 5) for opcode, t in _COMBINED]
    along += [("add", "s32", 0, "columns", 67)]
    for opcode, t, dimension, name, result in along:
        made = f"{t}[{result}] reduce($0, $1), dimensions={{{dimension}}}, to_apply={opcode}_{t}"
        yield Question(f"{opcode} of {name} of {t}", (f"{t}[5,67]", f"{t}[]"), (made,))


def _masked_rows() -> Iterator[Question]:
    """Choose elements of short rows by masks, each row with a value of its own and beside another
    array: neighbouring loads under conditions of their own."""
    for (opcode, t), c in zip(
        (("maximum", "f32"), ("add", "s32"), ("minimum", "f64"), ("minimum", "u16")), (2, 3, 4, 2)
    ):
        x, mask = f"{t}[33,{c}]", f"pred[33,{c}]"
        steps = (
            f"{x} select($0, $1, $2)",
            f"{t}[33] reduce(%0, $3), dimensions={{1}}, to_apply={opcode}_{t}",
            f"{x} broadcast(%1), dimensions={{0}}",
            f"{x} subtract(%0, %2)",
        )
        yield Question(f"{opcode} of masked {x}", (mask, x, x, f"{t}[]"), steps)
    for t, c in (("f32", 2), ("s64", 2), ("s32", 3), ("u8", 4)):
        row = f"{t}[{33 * c}]"
        moved = f"{t}[33,{c}] transpose($0), dimensions={{1,0}}"
        chosen = (moved, f"{row} reshape(%0)", f"{row} select($1, %1, $2)")
        given = (f"{t}[{c},33]", f"pred[{33 * c}]", row)
        yield Question(f"masked {t}[{c},33] in turn", given, chosen)


def _truncations() -> Iterator[Question]:
    """Convert floats to integers and back where integers have room for them: 0, not -0, of what is
    between -1 and 0."""
    for source, target in (("f32", "s32"), ("f32", "s64"), ("f64", "s32"), ("f64", "s64")):
        x, limit = f"{source}[65]", 2 ** (int(target[1:]) - 1)
        steps = (
            f"{source}[] constant({-limit})",
            f"{source}[] constant({limit})",
            f"{x} broadcast(%0), dimensions={{}}",
            f"{x} broadcast(%1), dimensions={{}}",
            "pred[65] compare($0, %2), direction=GT",
            "pred[65] compare($0, %3), direction=LT",
            "pred[65] and(%4, %5)",
            f"{target}[65] convert($0)",
            f"{x} convert(%7)",
            f"{x} select(%6, %8, $0)",
        )
        yield Question(f"{source} by way of {target}", (x,), steps)
