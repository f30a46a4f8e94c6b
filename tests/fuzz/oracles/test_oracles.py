"""Each oracle is silent about right columns, and speaks of a wrong one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from conftest import ROOT

import hlo
import interp
from backend_c.ir.loop_ir import Kernel, Loop
from backend_c.native.executable import Executable
from fuzz.draw.choices import Choices, examples
from fuzz.draw.programs import program
from fuzz.draw.values import arguments
from fuzz.oracles import ORACLES, Difference, LeftOut, is_known, named
from fuzz.oracles.isolation import by_name, narrower
from fuzz.oracles.oracle import Outcome, each
from fuzz.peers.xla import Answer
from fuzz.reducer.search import Case
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.values import Value
from tests.fuzz.planted import planted

_COUNT = 8  # hlo fuzz draws more
# What checks each access takes its time, and so do compilers without end.
_FEWER = {"configurations": 3, "sanitized": 3, "cuda-emulated": 3}
# The one that needs a GPU is tested on the emulated driver: tests/fuzz/oracles/test_cuda.py.
OURS = [name for name in ORACLES if not name.startswith("xla") and name != "cuda"]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    def drawn(choices: Choices) -> Case:
        module = program(choices)
        return Case(module, arguments(choices, module))

    return examples(drawn, _COUNT, "oracles")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", OURS)
def test_nothing_is_wrong(name: str, cases: list[Case]) -> None:
    cases = cases[-_FEWER.get(name, _COUNT) :]
    with ORACLES[name].open() as outcomes_of:
        outcomes = outcomes_of(cases)
    assert len(outcomes) == len(cases)
    wrong = [x for x in outcomes if isinstance(x, Difference)]
    assert not wrong, wrong[0]
    assert sum(isinstance(x, LeftOut) for x in outcomes) <= _COUNT // 5


_parse = hlo.parse
_PROGRAM = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  d = f32[4] subtract(x, y)
  ROOT r = f32[4] negate(d)
}
"""


def _swapped(module: Module, pipeline: str) -> Module:
    """A pass that exchanges the operands of a difference."""
    del pipeline
    return _parse(hlo.format(module).replace("subtract(x, y)", "subtract(y, x)"))


def _wrong(name: str) -> Callable[..., Value]:
    return planted(name, lambda value: value + 1)


def _evaluate(run: Callable[..., Value]) -> Callable[..., Value]:
    return lambda module, *arrays, fuel: run(module, arrays)


def _unsteady() -> Callable[..., Value]:
    """Each time by another number."""
    count = itertools.count()
    return _evaluate(planted("negate", lambda value: value + np.float32(next(count))))


def _of_constants_only() -> Callable[..., Value]:
    """Wrong where it sees constants, as a defect of folding is."""
    wrong, right = _evaluate(_wrong("negate")), interp.evaluate

    def evaluate(module: Module, *arrays: np.ndarray, fuel: int) -> Value:
        folds = any(i.opcode == "constant" for i in module.entry.instructions)
        return (wrong if folds else right)(module, *arrays, fuel=fuel)

    return evaluate


def _other_with_threads(count: int, executable: Executable, case: Case) -> Value:
    del executable, case
    return np.full(4, count, np.float32)


def _by_blocks_alone(kernel: Kernel) -> Kernel:
    """All threads of a block do the same, and store it."""
    loops = (s._replace(kind="parallel") if isinstance(s, Loop) else s for s in kernel.body)
    return replace(kernel, body=tuple(loops))


# oracle -> what is put in place of what, so that it must speak
_DEFECTS: dict[str, tuple[str, Callable[[], object]]] = {
    "same-bits": ("interp.evaluate", lambda: _evaluate(_wrong("negate"))),
    "threads": ("fuzz.oracles.exact._in_threads", lambda: _other_with_threads),
    "configurations": ("interp.evaluate", lambda: _evaluate(_wrong("negate"))),
    "sanitized": ("interp.evaluate", lambda: _evaluate(_wrong("negate"))),
    "cuda-emulated": ("backend_c.cuda.phases.mapped", lambda: _by_blocks_alone),
    "printed": ("hlo.parse", lambda: lambda text: _swapped(_parse(text), "")),
    "shapes": (
        "interp.evaluate",
        lambda: _evaluate(planted("negate", lambda value: value.astype(np.float64))),
    ),
    "twice": ("interp.evaluate", _unsteady),
    "constants": ("interp.evaluate", _of_constants_only),
    "passes": ("fuzz.oracles.exact.run", lambda: _swapped),
    "rewrites": ("interp.evaluate", lambda: _evaluate(_wrong("subtract"))),
}


@pytest.mark.parametrize("name", OURS)
def test_a_defect_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = hlo.parse(_PROGRAM)
    where, defect = _DEFECTS[name]
    monkeypatch.setattr(where, defect())
    arrays = (np.arange(4, dtype=np.float32), np.ones(4, np.float32))
    with ORACLES[name].open() as outcomes_of:
        (outcome,) = outcomes_of([Case(module, arrays)])
    assert isinstance(outcome, Difference), outcome
    assert outcome.kind and outcome.detail


def test_a_rewrite_is_an_oracle_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(hlo.parse(_PROGRAM), (np.zeros(4, np.float32), np.ones(4, np.float32)))
    with monkeypatch.context() as wrong, named("rewrites: reverse twice").open() as of:
        wrong.setattr("interp.evaluate", _evaluate(planted("reverse", lambda value: value + 1)))
        (found,) = of([case])
    assert isinstance(found, Difference) and found.oracle == "rewrites: reverse twice"
    assert is_known(found.oracle) and not is_known("rewrites: nothing")
    with by_name(found.oracle) as of:
        assert of([case]) == [None]


def test_where_bits_differ_is_an_oracle_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(hlo.parse(_PROGRAM), (np.zeros(4, np.float32), np.ones(4, np.float32)))
    with by_name("configurations") as of, monkeypatch.context() as wrong:
        wrong.setattr("interp.evaluate", _evaluate(_wrong("negate")))
        found = of([case, case])
    assert [type(one) for one in found] == [Difference, Difference]
    (first, _) = found
    assert isinstance(first, Difference)
    assert is_known(first.oracle) and not is_known("configurations: none")
    with narrower(first, of) as narrow:
        assert narrow([case]) == [None]


@pytest.mark.parametrize("error", [ArgumentError("no"), KeyError("no")])
def test_an_error_of_ours_in_a_configuration_is_a_difference(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """No process is between this oracle and the campaign's worker."""
    case = Case(hlo.parse(_PROGRAM), (np.zeros(4, np.float32), np.ones(4, np.float32)))

    def fails(*given: object) -> None:
        raise error

    with by_name("configurations") as of:
        monkeypatch.setattr("fuzz.oracles.configurations.outcome", fails)
        for found in (*of([case]), *of([case, case])):
            assert isinstance(found, Difference)
            assert found.kind.startswith(("ArgumentError", "defect: test_oracles.py:fails"))


def test_more_arrays_than_a_function_of_c99_has_parameters() -> None:
    results = [f"r{n} = f32[4] negate(x)" for n in range(60)]
    names, shapes = ", ".join(f"r{n}" for n in range(60)), ", ".join(["f32[4]"] * 60)
    body = "\n".join(["x = f32[4] parameter(0)", *results, f"ROOT t = ({shapes}) tuple({names})"])
    case = Case(hlo.parse(f"HloModule many\nENTRY e {{\n{body}\n}}"), (np.ones(4, np.float32),))
    name = "configurations: tcc -O0 embedded C99"
    if not is_known(name):
        pytest.skip("no tcc on this machine")
    with named(name).open() as of:
        assert of([case] * 8) == [None] * 8


def test_the_page_has_a_line_for_each() -> None:
    page = (ROOT / "docs" / "fuzzing.md").read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(ORACLES)


def test_a_defect_of_ours_is_found_like_any_other(cases: list[Case]) -> None:
    def outcome(case: Case) -> Outcome:
        return None if case is cases[0] else {}["nothing"]

    first, second = each(outcome)(cases[:2])
    assert first is None
    assert isinstance(second, Difference)
    assert (second.kind, second.detail.split(": ")[1]) == (
        "defect: test_oracles.py:outcome",
        "KeyError",
    )


class _Flipped:
    """A compiler that negates wrongly."""

    def __enter__(self) -> Callable[..., Answer]:
        run = _wrong("negate")
        return lambda text, arrays: Answer((np.asarray(run(_parse(text), arrays)),))

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""


@pytest.mark.parametrize("name", ["xla-constants", "xla-rewrites"])
def test_another_program_is_looked_at_instead(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.oracles.compilers.XLA", lambda timeout: _Flipped())
    case = Case(hlo.parse(_PROGRAM), (np.zeros(4, np.float32), np.ones(4, np.float32)))
    with ORACLES[name].open() as of, ORACLES["xla"].open() as plain:
        (found,) = of([case])
        assert isinstance(found, Difference) and found.oracle == "xla"
        assert found.case is not None and found.case.module != case.module
        (again,) = plain([found.case])
    assert isinstance(again, Difference) and again.kind == found.kind


@pytest.mark.parametrize(
    ("layout", "result", "is_found"),
    [("", "f32[2,2]", True), ("", "f32[4]", False), ("{0,1}", "f32[2,2]", False)],
)
def test_layouts_do_not_reach_xla(
    layout: str, result: str, is_found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzz.oracles.compilers.XLA", lambda timeout: _Flipped())
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[2,2] parameter(0)
  n = f32[2,2]{layout} negate(x)
  ROOT b = {result} bitcast(n)
}}
""")
    with ORACLES["xla"].open() as of:
        (found,) = of([Case(module, (np.ones((2, 2), np.float32),))])
    assert isinstance(found, Difference if is_found else LeftOut)
