"""Facts about opcodes stand in hlo/opcodes.py alone: no module keeps a table that restates them.

A *table* is a collection of opcodes, or of their functions' names, that a module assigns: a set, a
tuple, a list, a string of words, the keys of a mapping with what it says of each. A mapping from
opcodes to different things (rules, numbers, texts) is a definition, and restates nothing as long
as no other module has the same one. Any other table is a decision of its module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT

from hlo.opcodes import IN_TWO_STEPS, OPCODES, Trait, having, of_family
from hlo.walk import function_name

PACKAGES = ("hlo", "interp", "backend_c", "bisect_dump", "fuzz", "hlo_oracle", "selftest")
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
OPCODE_OF = {function_name(opcode): opcode for opcode in OPCODES} | {o: o for o in OPCODES}
NEARLY = 0.8  # of all opcodes that two tables have together, so many are in both
SEVERAL = 3  # a pair of opcodes says little: it may equal anything by chance

# What a seed draws, and which bugs are tried, follows the order of these: each is a decision.
DRAWN = ("fuzz/draw/", "selftest/injection/")
# Two witnesses: what an op means stands in each of them, and neither may ask the other.
WITNESSES = {"interp", "backend_c"}


class Table(NamedTuple):
    """A table in a file: its opcodes, each with the source of what is said of it, if anything."""

    file: str
    name: str
    rows: frozenset[tuple[str, str]]

    @property
    def opcodes(self) -> frozenset[str]:
        return frozenset(opcode for opcode, _ in self.rows)

    @property
    def is_set(self) -> bool:
        """Whether nothing is said of any opcode, or the same of all."""
        return len({said for _, said in self.rows}) == 1

    @property
    def is_fact(self) -> bool:
        return self.is_set and not self.file.startswith(DRAWN)

    def __str__(self) -> str:
        return f"{self.file}: {self.name} = {', '.join(sorted(self.opcodes))}"


def words(node: ast.expr) -> Iterator[str]:
    """The names that a collection is written with."""
    match node:
        case ast.Constant(value=str() as text):
            yield from text.split()
        case ast.Tuple() | ast.List() | ast.Set():
            for element in node.elts:
                yield from words(element)
        case ast.Starred(value=inner):
            yield from words(inner)
        case ast.BinOp(left=left, right=right):
            yield from (*words(left), *words(right))
        case ast.Call(func=ast.Name(id="frozenset" | "set" | "tuple" | "list"), args=[inner]):
            yield from words(inner)
        case ast.Call(func=ast.Attribute(attr="split"), args=[]):
            yield from words(node.func.value)
        case ast.Call(func=ast.Attribute(attr="fromkeys"), args=[inner, *_]):
            yield from words(inner)


def is_row(node: ast.expr) -> bool:
    """Whether it is a name, and something else that is said of it: ``("sine", "odd", f)``."""
    said = ast.Name | ast.Attribute | ast.Call | ast.Lambda
    return isinstance(node, ast.Tuple) and any(isinstance(x, said) for x in ast.walk(node))


def said(row: ast.expr) -> Iterator[tuple[str, str]]:
    """The name in a row, and all of the row."""
    constants = [node for node in ast.walk(row) if isinstance(node, ast.Constant)]
    names = [word for node in constants for word in words(node)]
    yield from ((name, ast.unparse(row)) for name in names[:1])


def rows(node: ast.expr) -> frozenset[tuple[str, str]]:
    """A collection's opcodes with what is said of each, if nearly all that is in it are opcodes."""
    if isinstance(node, ast.Tuple | ast.List) and all(map(is_row, node.elts)):
        pairs = [row for element in node.elts for row in said(element)]
    elif isinstance(node, ast.Dict):
        pairs = [
            (word, ast.unparse(value))
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
            for word in words(key)
        ]
    else:
        pairs = [(word, "") for word in words(node)]
    found = frozenset((OPCODE_OF[word], said) for word, said in pairs if word in OPCODE_OF)
    return found if len(found) > 1 and len(found) >= 0.9 * len(set(pairs)) else frozenset()


def collections(node: ast.expr) -> Iterator[frozenset[tuple[str, str]]]:
    """The largest collections of opcodes in an expression."""
    found = rows(node)
    if found:
        yield found
    if not found or isinstance(node, ast.Dict):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr):
                yield from collections(inner)


def tables(path: Path) -> Iterator[Table]:
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.Assign(targets=[target], value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pass
            case _:
                continue
        name = ast.unparse(target)
        if name != "__all__":  # the ops that a column has
            for found in collections(value):
                yield Table(path.relative_to(ROOT).as_posix(), name, found)


@cache
def every_table() -> list[Table]:
    """Read all files, when the first test asks."""
    return [table for path in FILES for table in tables(path)]


KNOWN = {f"having({trait.name})": having(trait) for trait in Trait if len(having(trait)) > 1}
KNOWN |= {f"having({name})": having(Trait[name]) for name in ("MONOID", "FUNCTION")}
KNOWN |= {"IN_TWO_STEPS": frozenset(IN_TWO_STEPS)}
FAMILIES = {row.family for row in OPCODES.values()}
KNOWN |= {f"of_family({family})": of_family(family) for family in sorted(FAMILIES)}


def combined() -> Iterator[tuple[str, frozenset[str]]]:
    """Yield unions, intersections and differences of two traits or families."""
    for (one, some), (other, others) in combinations(KNOWN.items(), 2):
        yield f"{one} | {other}", some | others
        yield f"{one} & {other}", some & others
        yield f"{one} - {other}", some - others
        yield f"{other} - {one}", others - some


def test_no_table_restates_a_trait_or_a_family() -> None:
    names = {opcodes: name for name, opcodes in combined() if len(opcodes) >= SEVERAL}
    names |= {opcodes: name for name, opcodes in KNOWN.items()}
    wrong = [
        f"{table}\n    is {names[table.opcodes]}"
        for table in every_table()
        if table.is_fact and table.opcodes in names
    ]
    assert not wrong, "\n".join(wrong)


def are_alike(one: Table, other: Table) -> bool:
    shared, every = one.rows & other.rows, one.rows | other.rows
    return len(shared) >= SEVERAL and len(shared) >= NEARLY * len(every)


def are_apart(one: Table, other: Table) -> bool:
    """Whether two tables may say the same."""
    packages = {table.file.partition("/")[0] for table in (one, other)}
    drawn = one.file.startswith(DRAWN) or other.file.startswith(DRAWN)
    return one.file == other.file or drawn or packages == WITNESSES


def test_no_two_modules_hold_nearly_the_same_table() -> None:
    wrong = [
        f"{one}\n{other}"
        for one, other in combinations(every_table(), 2)
        if not are_apart(one, other) and are_alike(one, other)
    ]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('A = frozenset(("infeed", "outfeed"))', {"infeed", "outfeed"}),
        ('A: tuple[str, ...] = (*("and", "or"), "xor")', {"and", "or", "xor"}),
        ('A = B | {"slice_", "abs_"}', {"slice", "abs"}),
        ('A = "sine cosine".split()', {"sine", "cosine"}),
        ('A = {"add": 1, "while_": 2}', {"add", "while"}),
        ('A = {"float": ("add", "multiply")}', {"add", "multiply"}),
        ('A = dict.fromkeys(("call", "fusion"), 3)', {"call", "fusion"}),
        ('A = (("sine", 1, f), ("cosine", 2, g))', {"sine", "cosine"}),
        ('A = ("add", "of", "numbers")', None),
        ('def f(): return {"add", "and"}', None),
    ],
)
def test_tables_are_found(source: str, found: set[str] | None) -> None:
    trees = ast.parse(source).body
    values = [node.value for node in trees if isinstance(node, ast.Assign | ast.AnnAssign)]
    tables = [{opcode for opcode, _ in rows} for value in values for rows in collections(value)]
    assert tables == ([] if found is None else [found])
