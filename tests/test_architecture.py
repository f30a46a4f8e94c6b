"""The house rules that a machine can hold: arrows, columns, sizes, names."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TypeGuard

import pytest
from conftest import ROOT

from hlo.opcodes import OPCODES
from hlo.walk import Op, column, function_name
from selftest.op_tables import ops_table

PACKAGES = ("hlo", "interp", "backend_c", "bisect_dump", "fuzz", "hlo_oracle", "selftest")
# Who may import whom, besides itself.
ARROWS = {
    "hlo": set(),
    "interp": {"hlo"},
    "backend_c": {"hlo"},
    "bisect_dump": {"hlo", "interp"},
    "fuzz": {"hlo", "interp", "backend_c", "bisect_dump"},
    "hlo_oracle": {"hlo", "interp", "backend_c", "bisect_dump", "fuzz"},
    "selftest": {"hlo", "interp", "backend_c", "bisect_dump", "fuzz", "hlo_oracle"},
}
# What may be imported from outside, besides Python's own library.
OUTSIDE = {
    "hlo": {"numpy", "ml_dtypes"},
    "interp": {"numpy", "ml_dtypes", "scipy"},
    "backend_c": {"numpy", "ml_dtypes", "cffi"},
    "bisect_dump": {"numpy", "ml_dtypes"},
    "fuzz": {"numpy", "ml_dtypes", "hypothesis"},
    "hlo_oracle": {"numpy", "ml_dtypes", "rich"},
    "selftest": {"numpy", "ml_dtypes", "rich", "mpmath", "scipy"},
}
# What the file of one peer may import besides: it is not there without the peer.
PEERS = {"fuzz/peers/xla.py": {"jax", "jaxlib"}, "fuzz/campaign/cluster.py": {"distributed"}}
FORBIDDEN = {"utils", "util", "common", "helpers", "helper", "misc", "base", "manager"}
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
ALL_FILES = FILES + sorted((ROOT / "tests").rglob("*.py"))
# Keywords that drivers add: a column names them where it needs them.
DRIVER = {"shape", "operand_shape", "backend_config", "frontend_attributes", "write", "block"}


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{identity(path)}: relative import"
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_arrows(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    ours = set(imported(path)) & {*PACKAGES, "tests", "bench"}
    assert ours <= {package, *ARROWS[package]}
    known = {*PACKAGES, *__import__("sys").stdlib_module_names, *OUTSIDE[package]}
    known |= PEERS.get(identity(path), set())
    assert set(imported(path)) <= known


@pytest.mark.parametrize("path", ALL_FILES, ids=identity)
def test_sizes(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 400, "more than 400 lines: two things"
    assert path.stem not in FORBIDDEN
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef):
            continue
        statements = sum(isinstance(inner, ast.stmt) for inner in ast.walk(node)) - 1
        assert statements <= 40, f"{node.name} has {statements} statements"
        positional = [a.arg for a in node.args.posonlyargs + node.args.args]
        positional = [name for name in positional if name not in ("self", "cls")]
        assert len(positional) <= 6, f"{node.name} has {len(positional)} positional parameters"


@pytest.mark.parametrize("path", sorted((ROOT / "backend_c/runtime").glob("*.h")), ids=identity)
def test_header_sizes(path: Path) -> None:
    assert path.read_text().count("\n") <= 400


def loaded(path: Path) -> Iterator[str]:
    """The modules that importing a file imports: not those it imports for type checkers only."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield str(node.module)


def test_no_module_imports_itself() -> None:
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in FILES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    # A package's own files may name the package: its __init__ has begun by then.
    graph = {
        name: {m for m in loaded(path) if m in names and not f"{name}.".startswith(f"{m}.")}
        for name, path in names.items()
    }
    TopologicalSorter(graph).prepare()  # CycleError names the modules of a cycle


@pytest.mark.parametrize("path", ALL_FILES, ids=identity)
def test_nothing_above_the_root_is_read(path: Path) -> None:
    """A clone has nothing beside it: no file climbs further than the project's root."""
    text, depth = path.read_text(), len(path.relative_to(ROOT).parts) - 1
    assert max(map(int, re.findall(r"\.parents\[(\d+)\]", text)), default=0) <= depth
    assert not re.search(r"""(Path\(|open\(|/ )["']\.\.""", text)


RIDDLE = re.compile(r"(?:Of|Those|What|The same|As)\b")


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_docstrings_say_what_a_thing_is(path: Path) -> None:
    """A first line is a verb with its object, or a noun: it does not lean on what stands around."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            text = ast.get_docstring(node) or ""
            assert not RIDDLE.match(text), f"{text.splitlines()[0]!r}"


def folder(module: str, modules: set[str]) -> str:
    """The package that a module is in; a package is in itself."""
    return module if module not in modules else module.rpartition(".")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_of_a_package_form_no_cycle(package: str) -> None:
    """Stages import one way, too. A folder and its own parent are one stage: a parent's files may
    name the children that they tie together, and children the parent's types."""
    files = [path for path in FILES if path.relative_to(ROOT).parts[0] == package]
    modules = {".".join(p.relative_to(ROOT).with_suffix("").parts) for p in files}
    graph: dict[str, set[str]] = {}
    for path in files:
        own = ".".join(path.relative_to(ROOT).parent.parts)
        for name in loaded(path):
            other = folder(name, modules) if name.startswith(f"{package}.") else own
            if not f"{own}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{own}."):
                graph.setdefault(own, set()).add(other)
    TopologicalSorter(graph).prepare()  # CycleError names the folders of a cycle


def declared_attributes(tree: ast.AST) -> set[str]:
    """The attributes that the classes of a file give their own objects."""
    nodes = [node for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for node in ast.walk(c)]
    fields = {n.target.id for n in nodes if isinstance(n, ast.AnnAssign) and is_name(n.target)}
    return fields | {n.attr for n in nodes if is_assigned(n) and is_name(n.value, "self")}


def is_name(node: ast.AST, *names: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and (not names or node.id in names)


def is_assigned(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)


# Of NumPy's arrays and of functions; and of the options of jaxlib's printer.
FOREIGN = {"real", "imag", "writeable", "__doc__"}
OPTIONS = {"fuzz/peers/xla.py": {"print_large_constants"}}


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_no_object_is_changed_from_outside(path: Path) -> None:
    """An attribute is assigned in the file of its class alone: what other files want of an object
    they say in arguments."""
    tree = ast.parse(path.read_text())
    allowed = declared_attributes(tree) | FOREIGN | OPTIONS.get(identity(path), set())
    for node in ast.walk(tree):
        if is_assigned(node) and not is_name(node.value, "self", "cls"):
            assert node.attr in allowed, f"line {node.lineno}: {ast.unparse(node)} is assigned"


def test_values_know_nothing_of_text() -> None:
    """Attributes are values: what they mean, and what ops require of them, is read from no text."""
    files = [*(ROOT / "hlo").glob("*.py"), *(ROOT / "hlo" / "ops").glob("*.py")]
    reading = {identity(p) for p in files if any(m.startswith("hlo.text") for m in loaded(p))}
    assert reading == {"hlo/__init__.py", "hlo/program_file.py"}


def columns() -> dict[str, dict[str, Op]]:
    homes = tuple(map(column, ("backend_c.elemental", "backend_c.kernels", "backend_c.lower")))
    twice = [name for name in homes[0] if name in homes[1] or name in homes[2]]
    assert not twice, f"{twice} have two homes in backend_c"
    return {
        "hlo/ops": dict(column("hlo.ops")),
        "interp": dict(column("interp.ops")),
        "backend_c": {name: op for home in homes for name, op in home.items()},
    }


def signature(op: Op) -> list[tuple[str, str, str]]:
    """Names, kinds and defaults, without what drivers add and without annotations."""
    return [
        (p.name, p.kind.name, repr(p.default))
        for p in inspect.signature(op.function).parameters.values()
        if p.name not in DRIVER
    ]


def test_signatures_are_equal_in_all_columns() -> None:
    table = columns()
    master = table["hlo/ops"]
    wrong = [
        f"{where}: {name}{inspect.signature(op.function)} differs from hlo/ops"
        for where, ops in table.items()
        for name, op in ops.items()
        if name in master and signature(op) != signature(master[name])
    ]
    assert not wrong, "\n".join(wrong)


def test_rules_of_the_envelope_take_what_their_ops_take() -> None:
    master = columns()["hlo/ops"]
    for name, rule in column("interp.envelope.ops").items():
        given = {p.name: p.kind.name for p in inspect.signature(rule.function).parameters.values()}
        if name in master and "VAR_KEYWORD" not in given.values():
            wanted = {p for p, kind, _ in signature(master[name]) if kind == "KEYWORD_ONLY"}
            assert wanted <= set(given), f"{name}: {wanted - set(given)}"


def test_columns_hold_nothing_but_ops() -> None:
    known = {function_name(opcode) for opcode in OPCODES}
    assert set(columns()["hlo/ops"]) == known - {"parameter"}
    for where, ops in columns().items():
        assert set(ops) <= known, where


def test_the_table_of_ops_is_current() -> None:
    """docs/ops.md is generated: python -m selftest.op_tables.ops_table writes it."""
    assert (ROOT / "docs" / "ops.md").read_text() == ops_table.table()
