"""``import hlo_oracle as ho``: from functions, files and texts to modules, results, verdicts."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

import hlo
import hlo_oracle as ho
from hlo.errors import ArgumentError, Error, Unsupported
from hlo_oracle.frontends.jax_internals import with_x64

jax = pytest.importorskip("jax")
jnp = jax.numpy
EXAMPLE = ROOT / "examples" / "power_of_integers.hlo"


def layer(p: dict[str, Any], x: Any, key: Any, n: int) -> dict[str, Any]:
    h = jnp.tanh(x @ p["w"] + p["b"])
    h = h + 0.1 * jax.random.normal(key, h.shape)
    return {"loss": (h**n).mean(), "sums": [h.sum(0)]}


def arguments() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    p = {"w": rng.standard_normal((6, 4), np.float32), "b": np.zeros(4)}
    return p, np.ones((3, 6), np.float32), jax.random.key(1), 2


def test_a_function_with_a_pytree_a_key_and_numbers() -> None:
    verdict = ho.check(layer, *arguments())
    assert verdict and not verdict.outside
    assert [leaf.path for leaf in verdict.leaves] == ["['loss']", "['sums'][0]"]
    assert verdict.equal + verdict.within + verdict.undetermined == 5
    assert "layer on XLA (jaxlib" in repr(verdict)
    # Types of 64 bits if another test has asked JAX for them.
    assert verdict.table().splitlines()[2].startswith("['sums'][0]  float")


def test_a_jitted_function_keeps_its_donated_arguments() -> None:
    def step(p: Any, x: Any, n: int) -> Any:
        return jax.tree.map(lambda y: y * n + x, p)

    p = {"w": jnp.ones((2, 3)), "b": jnp.zeros(3)}
    jitted = jax.jit(step, static_argnums=2, donate_argnums=0)
    assert ho.check(jitted, p, np.arange(3.0), 2)
    assert not p["w"].is_deleted() and not p["b"].is_deleted()
    with pytest.raises(ArgumentError, match="static arguments are named there"):
        ho.check(jitted, p, np.arange(3.0), 2, static_argnums=2)


@pytest.mark.parametrize(
    ("function", "given", "named", "more"),
    [
        (lambda x, n: x * n, (2.5, 3), {}, {}),
        (lambda x, n: x * n, (2.5, 3), {}, {"static_argnums": 1}),
        (lambda x, *, n: x[:n], (np.arange(5),), {"n": 3}, {"static_argnames": "n"}),
        (lambda x, y: y + 1, (np.ones(3), np.ones(2)), {}, {}),  # x is left out of the program
        (lambda x: (x, None, {"same": x}), (np.arange(3),), {}, {}),
        (lambda x: x.astype(jnp.bfloat16) * 3, (np.arange(3),), {}, {}),
        (lambda x: (x + 1).astype(jnp.int4), (np.arange(3),), {}, {}),
        (partial(jnp.add, 3), (np.ones(2, np.complex64),), {}, {}),
        (lambda: jnp.arange(3), (), {}, {}),
        (lambda x: (), (1,), {}, {}),
        (lambda x: x[:0], (np.ones((3, 2)),), {}, {}),
        (jnp.linalg.inv, (np.eye(3) + 0.5,), {}, {}),
        (jax.random.split, (jax.random.key(3),), {}, {}),
        (jax.grad(lambda x: jnp.sin(x).sum()), (np.ones((2, 2)),), {}, {}),
        (jax.vmap(lambda x, y: x @ y), (np.ones((2, 3)), np.ones((2, 3))), {}, {}),
    ],
)
def test_functions_of_every_kind(
    function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any], more: Any
) -> None:
    assert not ho.check(function, *given, **named, **more).outside


class Layer:
    """A layer of a model, with a jitted method and one that is not."""

    def __init__(self) -> None:
        self.weights = jnp.eye(3) * 2

    @partial(jax.jit, static_argnums=0)
    def jitted(self, x: Any) -> Any:
        return x @ self.weights

    def plain(self, x: Any) -> Any:
        return x @ self.weights


def test_methods() -> None:
    layer, x = Layer(), np.ones((2, 3), np.float32)
    for method in (layer.jitted, layer.plain):
        assert ho.check(method, x).equal == 6
        assert ho.run(method, x).tolist() == [[2, 2, 2]] * 2


def test_a_miscompile_in_two_lines() -> None:
    """x / s as x * (1 / s), whose reciprocal is subnormal and becomes 0."""
    verdict = ho.check(lambda x: {"y": x / jnp.float32(2e38), "z": x + 1}, np.float32([1e38, 1]))
    assert not verdict and verdict.outside == 1
    assert [leaf.kind for leaf in verdict.leaves] == ["outside", "equal"]
    assert repr(verdict).startswith("<Verdict OUTSIDE: <lambda> on XLA")
    assert verdict.evidence[0].startswith("['y']: 1 of 2 outside, first at [0]: 0.0, where 0.5 is")
    assert "&lt;lambda&gt;" in verdict._repr_html_() and "<lambda>" not in verdict._repr_html_()


def test_the_report_of_a_miscompile(tmp_path: Path) -> None:
    verdict = ho.check(lambda x: x / jnp.float32(2e38), np.float32([1e38]))
    archive = verdict.report(tmp_path / "report", seconds=5)
    assert archive.is_file() and (tmp_path / "report" / "reduced.hlo").is_file()
    with pytest.raises(Error, match="nothing is wrong"):
        ho.check(lambda x: x + 1, 1.0).report(tmp_path / "other")


def test_exact_results_have_the_structure_of_the_function() -> None:
    found = ho.run(lambda x: {"y": (x + 1, [x * 2])}, np.arange(3))
    assert found["y"][0].tolist() == [1, 2, 3] and found["y"][1][0].tolist() == [0, 2, 4]


def test_a_module_of_everything_that_jax_makes() -> None:
    x = np.ones((4, 2), np.float32)
    jitted = jax.jit(lambda x: x @ x.T)
    traced, lowered = jitted.trace(x), jitted.lower(x)
    function, compiled = ho.load(jitted, x), ho.load(lowered.compile())
    exported = importlib.import_module("jax.export").export(jitted)(x)
    stages = (traced, lowered, lowered.as_text(), lowered.compiler_ir("hlo"), exported)
    made = [ho.load(y) for y in stages]
    assert ho.load(function) is function
    assert compiled.name == function.name
    expected = ho.run(function, x)
    for one in (*made, compiled, lowered.as_text("hlo"), lowered.compiler_ir()):
        assert ho.run(one, x).tolist() == expected.tolist()


def test_compiled_and_emitted() -> None:
    module = ho.load(EXAMPLE)
    arrays = (np.int32([3]), np.int32([4])) if len(module.entry.parameters) == 2 else ()
    files = ho.emit(lambda x: x + 1, np.ones(3, np.float32), target="embedded")
    assert any(name.endswith(".c") for name in files)
    if arrays:
        executable = ho.compile(module, numerics="exact")
        assert executable(*arrays).tolist() == ho.run(module, *arrays).tolist()


def second_of(x: Any, y: Any, count: int = 1) -> Any:
    return y * count


@pytest.mark.parametrize(
    "function",
    [
        second_of,
        jax.jit(second_of),
        jax.jit(second_of, donate_argnums=1),
        jax.jit(second_of, keep_unused=True),
    ],
)
def test_arguments_that_nothing_reads_are_parameters(function: Callable[..., Any]) -> None:
    """An executable and C take what the function takes."""
    x = np.float32([1, 2])
    with with_x64(False):  # numbers of Python are of 32 bits
        executable = ho.compile(function, x, 2.0, 3)
        parameters = ho.load(function, x, 2.0, 3).entry.parameters
        header = ho.emit(function, x, 2.0, 3, target="embedded")["module.h"].decode()
    assert executable(x, 1.5, 2) == executable([1, 2], np.float32(1.5), np.int32(2)) == 3
    assert [p.shape.dims for p in parameters] == [(2,), (), ()]
    taken = "const float *in_x, const float *in_y, const int32_t *in_count, float *out"
    assert taken in header
    with pytest.raises(ho.Error, match=r"parameter 2 \(.*\): expected s32\[\], got float"):
        executable(x, 1.5, 2.5)


def test_static_arguments_are_no_parameters() -> None:
    x = np.float32([1, 2])
    for static in ({"static_argnums": 2}, {"static_argnames": "count"}):
        module = ho.load(jax.jit(second_of, **static), x, x, 3)  # type: ignore[call-overload]
        assert len(module.entry.parameters) == 2
        assert ho.run(module, x, x).tolist() == [3, 6]


def raises(x: Any) -> Any:
    raise ValueError("no\nway")


def generates(x: Any) -> Any:
    yield x


BAD = [
    (raises, (1,), "raises: JAX cannot trace it: ValueError: no\nway"),
    (jnp.sin, (jax.ShapeDtypeStruct((4,), "f4"),), "sin: JAX cannot run it: "),
    (generates, (1,), "generates: JAX cannot jit it: "),
    (lambda x: x.nothing, (1,), "JAX cannot trace it: AttributeError"),
    (jnp.sin, ("a",), "sin: JAX cannot trace it: TypeError"),
    (3, (), "int is no program: HLO text, a path"),
    (None, (), "NoneType is no program"),
    (np.float32, (1,), "type is no program"),
    ("missing.hlo", (), "missing.hlo: there is no such file"),
    ("HloModule m", (), "1:"),
    (EXAMPLE, (1, 2, 3, 4, 5), "argument"),
]


@pytest.mark.parametrize(("program", "given", "said"), BAD)
def test_bad_input(program: object, given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(Error) as raised:
        ho.check(program, *given)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct((), jnp.float32), x),
        lambda x: jax.debug.print("{}", x),
    ],
)
def test_what_calls_python_is_no_program(function: Callable[..., Any]) -> None:
    with pytest.raises(Unsupported, match="calls Python while it runs.* JAX_PLATFORMS=hlo_oracle"):
        ho.check(function, np.float32(1))


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(ArgumentError, match="a function runs on its own device"):
        ho.check(jnp.sin, 1.0, against="xla")
    with pytest.raises(ArgumentError, match="no function, and so no argument 'k'"):
        ho.check(EXAMPLE, k=1)
    with pytest.raises(ArgumentError, match="no function, and so no argument 'k'"):
        ho.run(EXAMPLE, k=1)
    with pytest.raises(ArgumentError, match="no budget is named 'mine'; there are exact, "):
        ho.check(jnp.sin, 1.0, budget="mine")
    with pytest.raises(ArgumentError, match="arguments are for a Python function"):
        ho.load(EXAMPLE, 1)


@pytest.mark.parametrize("seed", ["a", 1.5, -1, 2**64])
def test_what_is_no_seed(seed: Any) -> None:
    for call in (ho.run, ho.check):
        for program in (TWICE, jnp.sin):
            with pytest.raises(ArgumentError, match="a whole number from 0 to"):
                call(program, ROW, seed=seed)


TWICE = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}"
ROW = np.arange(4, dtype=np.float32)


def test_results_in_another_byte_order_are_judged() -> None:
    assert ho.check(TWICE, ROW, results=[(ROW + ROW).astype(">f4")]).equal == 4


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ((), {"results": [ROW + ROW]}, "results are those of certain arguments"),
        ((ROW,), {"results": [ROW * 2], "against": "xla"}, "the compiler against would not run"),
        ((ROW,), {"results": [np.float64(2) * ROW.astype("f8")]}, "result 0 is float64[4], where"),
        ((ROW,), {"results": [None]}, "recorded result 0 is object[], where m has f32[4]"),
        ((ROW,), {"results": [ROW[:2]]}, "recorded result 0 is float32[2], where m has f32[4]"),
        ((ROW,), {"results": 3}, "results are a sequence of arrays, not int"),
        ((ROW,), {"results": [ROW * 2], "budget": 3}, "a budget is one, or its name, not int"),
        ((ROW,), {"against": 3}, "against is a compiler's name, not int"),
    ],
)
def test_results_that_cannot_be_judged(given: Any, named: dict[str, Any], said: str) -> None:
    """Mistakes of the user are not proven wrong of a compiler."""
    with pytest.raises(ArgumentError) as raised:
        ho.check(TWICE, *given, **named)
    assert said in str(raised.value)


def test_a_narrower_budget_proves_more() -> None:
    """The sine of XLA:CPU is not correctly rounded."""
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    assert ho.check(jnp.sin, x)
    assert not ho.check(jnp.sin, x, budget="exact")


SCRIPT = """
import numpy as np, jax, jax.numpy as jnp
import hlo_oracle as ho
print("once")
# The envelope alone cannot tell: processes are started for values in between.
verdict = ho.check(lambda x: (jnp.floor(jnp.exp(x)), x), np.float32([0, 1]))
print(bool(verdict))
"""


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    """Processes of multiprocessing would import it again."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-W", "error", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("once\nTrue\n", "")


def test_the_door_is_light() -> None:
    """Nothing is imported before it is asked for; the version is known."""
    program = "import sys, hlo_oracle; print(hlo_oracle.__version__, *sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    version, *loaded = done.stdout.split()
    assert version[0].isdigit() and not {"numpy", "jax", "interp", "backend_c"} & {*loaded}
    assert {*dir(ho)} >= {"check", "load", "run", "compile", "emit"}
    assert all(getattr(ho, name).__doc__ for name in ho.__all__ if name != "__version__")
    assert hlo.Error is ho.Error
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ho.nothing  # type: ignore[attr-defined]


def test_the_page_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    """The first example of docs/checking.md prints what stands below it."""
    page = (ROOT / "docs" / "checking.md").read_text()
    code, rest = page.partition("```python\n")[2].split("```\n", 1)
    exec(compile(code, "checking.md", "exec"), {})
    below = rest.strip("\n").partition("\n\n")[0]
    expected = "".join(f"{line[4:]}\n" for line in below.splitlines())
    version = re.compile(r"jaxlib [0-9.]+, [\w:]+")  # cpu:0 was TFRT_CPU_0
    assert version.sub("", capsys.readouterr().out) == version.sub("", expected)
