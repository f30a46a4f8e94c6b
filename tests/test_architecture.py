"""The house rules that a machine can hold: arrows, columns, sizes, names."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple, TypeGuard

import pytest
from conftest import ROOT

from hlo.opcodes import OPCODES
from hlo.walk import Op, column, function_name
from selftest.op_tables import ops_table

PACKAGES = (
    *("hlo", "interp", "backend_c", "bisect_dump", "fuzz", "pages"),
    *("hlo_oracle", "selftest", "bench"),
)
# Who may import whom, besides itself.
ARROWS = {
    "hlo": set(),
    "interp": {"hlo"},
    "backend_c": {"hlo"},
    "bisect_dump": {"hlo", "interp"},
    "fuzz": {"hlo", "interp", "backend_c", "bisect_dump"},
    "pages": {"hlo", "interp", "backend_c"},
    "hlo_oracle": {"hlo", "interp", "backend_c", "bisect_dump", "fuzz", "pages"},
    "selftest": {"hlo", "interp", "backend_c", "bisect_dump", "fuzz", "pages", "hlo_oracle"},
    "bench": {"hlo", "interp", "backend_c", "bisect_dump", "fuzz", "hlo_oracle"},
}
# What may be imported from outside, besides Python's own library.
OUTSIDE = {
    "hlo": {"numpy", "ml_dtypes"},
    "interp": {"numpy", "ml_dtypes", "scipy"},
    "backend_c": {"numpy", "ml_dtypes", "cffi"},
    "bisect_dump": {"numpy", "ml_dtypes"},
    "fuzz": {"numpy", "ml_dtypes", "hypothesis"},
    "pages": {"numpy", "ml_dtypes"},
    "hlo_oracle": {"numpy", "ml_dtypes", "rich"},
    "selftest": {"numpy", "ml_dtypes", "rich", "mpmath", "scipy"},
    "bench": {"numpy", "ml_dtypes", "rich"},
}
# The files of operations of ATen, which are functions of JAX's arrays.
ATEN = (
    "bessel", "byte_images", "contraction", "counting", "ctc", "data_movement", "distances",
    "elementwise",
    "embedding_bag", "gamma", "indexing", "linear_algebra", "losses", "order_statistics",
    "polynomials", "pooling", "promotion", "quantization", "reductions", "resampling", "segments",
)  # fmt: skip
TORCH_SCORE = ("cases", "comparison", "conversions", "examiner")
# What the file of one peer may import besides: it is not there without the peer.
PEERS = {
    "fuzz/peers/jaxlib_modules.py": {"jaxlib"},
    "fuzz/peers/xla.py": {"jax", "jaxlib"},
    "fuzz/peers/stablehlo.py": {"jaxlib"},
    "fuzz/peers/pjrt.py": {"pypjrt"},
    "selftest/microcontrollers/onnx_peer.py": {"onnx"},
    "fuzz/campaign/cluster.py": {"distributed"},
    "bench/programs/make.py": {"jax"},
    "bench/programs/user_functions.py": {"jax"},
    "bench/torch_models.py": {"torch"},
    "bench/torch_programs.py": {"torch"},
    "hlo_oracle/frontends/jax_calls.py": {"jax"},
    "hlo_oracle/frontends/jax_functions.py": {"jax"},
    "hlo_oracle/frontends/jax_internals.py": {"jax"},
    "hlo_oracle/frontends/pjrt/__init__.py": {"jax"},
    "hlo_oracle/frontends/pjrt/callbacks.py": {"jax"},
    "hlo_oracle/frontends/pjrt/host_arrays.py": {"jax"},
    "hlo_oracle/frontends/pjrt/partitioning.py": {"jaxlib"},
    "hlo_oracle/frontends/pjrt/registration.py": {"jax", "jaxlib"},
    "hlo_oracle/frontends/pjrt/stablehlo.py": {"jaxlib"},
    "hlo_oracle/frontends/symbolic_shapes.py": {"jaxlib"},
    "hlo_oracle/frontends/tensorflow.py": {"tensorflow"},
    **{f"hlo_oracle/frontends/torch/aten/{name}.py": {"jax"} for name in ATEN},
    "hlo_oracle/frontends/torch/captured.py": {"torch"},
    "hlo_oracle/frontends/torch/composites.py": {"torch"},
    "hlo_oracle/frontends/torch/compiled_stages.py": {"jax", "torch"},
    "hlo_oracle/frontends/torch/control_flow.py": {"jax", "torch"},
    "hlo_oracle/frontends/torch/data_sizes.py": {"torch"},
    "hlo_oracle/frontends/torch/decompositions.py": {"torch"},
    "hlo_oracle/frontends/torch/graph_breaks.py": {"torch"},
    "hlo_oracle/frontends/torch/factorizations.py": {"torch"},
    "hlo_oracle/frontends/torch/formulas.py": {"torch"},
    "hlo_oracle/frontends/torch/functions.py": {"jax", "torch"},
    "hlo_oracle/frontends/torch/graph_compiler.py": {"functorch", "torch"},
    "hlo_oracle/frontends/torch/graphs.py": {"jax", "torch"},
    "hlo_oracle/frontends/torch/lists.py": {"torch"},
    "hlo_oracle/frontends/torch/optimizers.py": {"torch"},
    "hlo_oracle/frontends/torch/reads.py": {"torch"},
    "hlo_oracle/frontends/torch/rewriting.py": {"torch"},
    "hlo_oracle/frontends/torch/sequences.py": {"torch"},
    "hlo_oracle/frontends/torch/strided.py": {"torch"},
    "hlo_oracle/frontends/torch/tensors.py": {"torch"},
    "hlo_oracle/frontends/torch/tracing.py": {"torch"},
    "hlo_oracle/frontends/torch/unwritten.py": {"torch"},
    "hlo_oracle/frontends/torch/values_between.py": {"torch"},
    "hlo_oracle/frontends/torch/windows.py": {"torch"},
    "selftest/torch_nets.py": {"torch"},
    **dict.fromkeys(map("selftest/torch_score/{}.py".format, TORCH_SCORE), {"torch"}),
    "hlo_oracle/pytest_plugin.py": {"pytest"},
    "selftest/browser_pages.py": {"playwright"},
    "selftest/package_suites/session.py": {"pytest"},
    "selftest/versions/jax_doors.py": {"jax"},
    "selftest/versions/torch_doors.py": {"torch"},
    "selftest/jax_score/calls.py": {"jax"},
    "selftest/jax_score/cases.py": {"jax"},
    "selftest/jax_score/comparison.py": {"jax"},
    "selftest/jax_score/coverage.py": {"jax"},
    "selftest/jax_score/custom_rules.py": {"jax"},
    "selftest/jax_score/examiner.py": {"jax"},
    "selftest/plugin_memory.py": {"jax"},
    "selftest/real_programs/session.py": {"jax"},
    "selftest/triage_examples.py": {"jaxlib"},
}
FORBIDDEN = {"utils", "util", "common", "helpers", "helper", "misc", "base", "manager"}
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
ALL_FILES = FILES + sorted((ROOT / "tests").rglob("*.py"))
# Keywords that drivers add: a column names them where it needs them.
DRIVER = {
    *("shape", "operand_shape", "operand_shapes"),
    *("backend_config", "frontend_attributes", "write", "block"),
}


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Facts(NamedTuple):
    """Properties of one source file: the top-level packages that it imports; the modules that
    importing it imports, but for type checkers; what exceeds a limit; what it assigns to objects of
    other files."""

    imports: frozenset[str]
    loads: tuple[str, ...]
    too_large: tuple[str, ...]
    assigned: tuple[str, ...]


@cache
def facts(path: Path) -> Facts:
    """Each file is parsed once for all tests."""
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    allowed = FOREIGN | OPTIONS.get(identity(path), set())
    return Facts(
        frozenset(imported(path, nodes)),
        tuple(loaded(tree)),
        tuple(fault for function in functions for fault in exceeded(function)),
        tuple(assigned_from_outside(nodes, allowed)),
    )


def imported(path: Path, nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{identity(path)}: relative import"
            yield (node.module or "").split(".")[0]


def loaded(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield str(node.module)


def statements(node: ast.AST) -> int:
    """Count the statements of a statement, itself included; expressions, of which a file has a
    hundred times as many, hold none."""
    fields = ("body", "orelse", "finalbody", "handlers", "cases")
    inner = (child for field in fields for child in getattr(node, field, ()))
    return isinstance(node, ast.stmt) + sum(map(statements, inner))


def exceeded(function: ast.FunctionDef) -> Iterator[str]:
    """The limits that a function exceeds."""
    count = statements(function) - 1
    if count > 40:
        yield f"{function.name} has {count} statements"
    positional = [a.arg for a in function.args.posonlyargs + function.args.args]
    positional = [name for name in positional if name not in ("self", "cls")]
    if len(positional) > 6:
        yield f"{function.name} has {len(positional)} positional parameters"


@pytest.mark.parametrize("package", PACKAGES)
def test_arrows(package: str) -> None:
    known = {package, *ARROWS[package], *sys.stdlib_module_names, *OUTSIDE[package]}
    wrong = [
        f"{identity(path)} imports {name}"
        for path in FILES
        if path.relative_to(ROOT).parts[0] == package
        for name in sorted(facts(path).imports - known - PEERS.get(identity(path), set()))
    ]
    assert not wrong, "\n".join(wrong)


def test_sizes() -> None:
    wrong = []
    for path in ALL_FILES:
        wrong += [f"{identity(path)}: {fault}" for fault in facts(path).too_large]
        if path.read_text().count("\n") > 400:
            wrong.append(f"{identity(path)}: more than 400 lines: two things")
        if path.stem in FORBIDDEN:
            wrong.append(f"{identity(path)}: a name that says nothing")
    assert not wrong, "\n".join(wrong)


def test_folder_sizes() -> None:
    modules = Counter(path.parent for path in ALL_FILES)
    assert [folder for folder, count in modules.items() if count > 35] == []


def test_header_sizes() -> None:
    headers = sorted((ROOT / "backend_c/runtime").glob("*.h"))
    assert [h.name for h in headers if h.read_text().count("\n") > 400] == []


def test_no_module_imports_itself() -> None:
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in FILES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    # A package's own files may name the package: its __init__ has begun by then.
    graph = {
        name: {m for m in facts(path).loads if m in names and not f"{name}.".startswith(f"{m}.")}
        for name, path in names.items()
    }
    TopologicalSorter(graph).prepare()  # CycleError names the modules of a cycle


def test_nothing_above_the_root_is_read() -> None:
    """A clone has nothing beside it: no file climbs further than the project's root."""
    wrong = []
    for path in ALL_FILES:
        text, depth = path.read_text(), len(path.relative_to(ROOT).parts) - 1
        climbs = max(map(int, re.findall(r"\.parents\[(\d+)\]", text)), default=0)
        if climbs > depth or re.search(r"""(Path\(|open\(|/ )["']\.\.""", text):
            wrong.append(identity(path))
    assert not wrong, "\n".join(wrong)


# A pattern, not a syntax tree: to parse all tests takes two seconds.
RIDDLE = re.compile(r'^ *r?"""((?:Of|Those|What|The same|As|Also|And|But|Nor|So|Or)\b.*)', re.M)


def test_docstrings_say_what_a_thing_is() -> None:
    """A first line is a sentence, a verb with its object, or a noun: it does not lean on a name or
    on what stands around. This holds of tests, too."""
    found = {path: RIDDLE.findall(path.read_text("utf-8")) for path in ALL_FILES}
    wrong = [f"{identity(path)}: {line}" for path, lines in found.items() for line in lines]
    assert not wrong, "\n".join(wrong)


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
        for name in facts(path).loads:
            other = folder(name, modules) if name.startswith(f"{package}.") else own
            if not f"{own}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{own}."):
                graph.setdefault(own, set()).add(other)
    TopologicalSorter(graph).prepare()  # CycleError names the folders of a cycle


def declared_attributes(nodes: Iterable[ast.AST]) -> set[str]:
    """The attributes that the classes of a file give their own objects."""
    inside = [node for c in nodes if isinstance(c, ast.ClassDef) for node in ast.walk(c)]
    fields = {n.target.id for n in inside if isinstance(n, ast.AnnAssign) and is_name(n.target)}
    return fields | {n.attr for n in inside if is_assigned(n) and is_name(n.value, "self")}


def is_name(node: ast.AST, *names: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and (not names or node.id in names)


def is_assigned(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)


# Of NumPy's arrays and of functions; of JAX's functions and arrays, of the options of jaxlib's
# printer, of entries of archives, of Python's streams.
FOREIGN = {"real", "imag", "writeable", "__doc__"}
OPTIONS = {
    "fuzz/peers/xla.py": {"env_option_overrides", "print_large_constants"},
    "bench/programs/make.py": {"print_large_constants"},
    "hlo_oracle/command/process.py": {"stdout"},
    "hlo_oracle/frontends/jax_functions.py": {"print_large_constants"},
    "hlo_oracle/frontends/pjrt/callbacks.py": {"emit_python_callback"},
    "hlo_oracle/frontends/pjrt/host_arrays.py": {"__dlpack__", "__dlpack_device__"},
    "hlo_oracle/frontends/pjrt/partitioning.py": {"env_option_overrides"},
    "backend_c/native/machine_limits.py": {"argtypes", "restype"},
    "bench/speed/peers/xla.py": {"multiple_results"},
    "selftest/gpu/bundle.py": {"size", "mode"},
}


def assigned_from_outside(nodes: Sequence[ast.AST], allowed: set[str]) -> Iterator[str]:
    """Assignments to attributes that no class of the file declares."""
    own = declared_attributes(nodes) | allowed
    for node in nodes:
        if is_assigned(node) and not is_name(node.value, "self", "cls") and node.attr not in own:
            yield f"line {node.lineno}: {ast.unparse(node)} is assigned"


def test_no_object_is_changed_from_outside() -> None:
    """An attribute is assigned in the file of its class alone: what other files want of an object
    they say in arguments."""
    wrong = [f"{identity(path)}: {one}" for path in FILES for one in facts(path).assigned]
    assert not wrong, "\n".join(wrong)


def test_the_type_of_arrays_is_named_once() -> None:
    """Everyone imports ``Array`` from there."""
    named = re.compile(r"^\w+(: \w+)? = np\.ndarray\[Any, Any\]", re.MULTILINE)
    found = [identity(path) for path in ALL_FILES if named.search(path.read_text("utf-8"))]
    assert found == ["hlo/values.py"]


def test_values_know_nothing_of_text() -> None:
    """Attributes are values: what they mean, and what ops require of them, is read from no text."""
    files = [*(ROOT / "hlo").glob("*.py"), *(ROOT / "hlo" / "ops").glob("*.py")]
    reading = {identity(p) for p in files if any(m.startswith("hlo.text") for m in facts(p).loads)}
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
