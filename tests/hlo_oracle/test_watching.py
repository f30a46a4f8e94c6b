"""Calls of what JAX compiles: judged while a program runs, or recorded and judged elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo_oracle as ho
from hlo.errors import ArgumentError, Error
from hlo_oracle.command.main import main
from hlo_oracle.frontends import jax_calls

jax = pytest.importorskip("jax")
jnp = jax.numpy


def fine(x: Any) -> Any:
    return x * 2 + 1


def wrong(x: Any) -> Any:
    """x / s as x * (1 / s), whose reciprocal is subnormal and becomes 0."""
    return x / jnp.float32(2e38)


def test_the_first_call_and_each_one_of_so_many() -> None:
    jitted = jax.jit(fine)
    before = jitted(np.float32([1, 2]))
    with ho.checking(every=3, names="fine") as checked:
        for n in range(7):
            assert jitted(np.float32([n, 2])).tolist() == [2 * n + 1, 5]
    assert [v.what for v in checked.verdicts] == [f"jit_fine, call {n}" for n in (0, 3, 6)]
    assert all(checked.verdicts) and not checked.not_judged
    assert jitted(np.float32([1, 2])).tolist() == before.tolist()
    assert len(checked.verdicts) == 3


def test_what_is_proven_wrong_is_a_warning() -> None:
    with ho.checking(names="wrong") as checked, pytest.warns(ho.MiscompileWarning) as told:
        jax.jit(wrong)(np.float32([1e38]))
    assert "OUTSIDE: jit_wrong, call 0 on XLA" in str(told[0].message)
    assert checked.table().startswith("OUTSIDE: jit_wrong")


def test_or_an_error_of_the_call() -> None:
    @ho.checking(names="wrong", raises=True)
    def step() -> Any:
        return jax.jit(wrong)(np.float32([1e38]))

    for _ in range(2):  # a decorator opens its block each time
        with pytest.raises(ho.Miscompile, match="0.0, where 0.5 is exact") as raised:
            step()
        assert raised.value.verdict.outside == 1


def test_programs_of_an_error_are_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's caches are cleared of programs compiled while calls are observed, whatever ends it."""
    cleared = []
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(1))
    with pytest.raises(KeyError), jax_calls.observed(*(lambda *_: True,) * 3):
        raise KeyError
    assert len(cleared) == 2


def test_operations_outside_of_any_jit_and_donated_arguments() -> None:
    with ho.checking() as checked:
        x = jnp.arange(4) + 1
        jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    assert [leaf.kind for v in checked.verdicts for leaf in v.leaves] == ["equal"] * len(
        checked.verdicts
    )
    assert {"jit_iota", "jit_add"} <= {v.what.partition(",")[0] for v in checked.verdicts}


def test_what_cannot_be_judged_is_said() -> None:
    def printed(x: Any) -> Any:
        jax.debug.print("{x}", x=x)
        return x + 1

    def called(x: Any) -> Any:
        return jax.pure_callback(lambda y: y, x, x)

    before = jax.jit(fine).lower(np.float32(1)).compile()
    with ho.checking(every=2, names="printed|called|fine") as checked:
        for _ in range(3):
            jax.jit(printed)(np.float32(1))
        jax.jit(called)(np.float32(1))
        before(np.float32(1))
    assert not checked.verdicts
    calls_python = "it calls Python while it runs (a callback, debug.print), which HLO does not"
    assert [line.removesuffix(" describe") for line in checked.not_judged] == [
        f"jit_printed, call 0: {calls_python}",
        f"jit_printed, call 2: {calls_python}",
        f"jit_called, call 0: {calls_python}",
        "jit_fine, call 0: it was compiled before",
    ]


def test_a_warning_names_the_line_that_called() -> None:
    with ho.checking(names="wrong"), pytest.warns(ho.MiscompileWarning) as told:
        jax.jit(wrong)(np.float32([1e38]))
    assert told[0].filename == __file__


def test_a_check_inside_of_a_block_judges_once() -> None:
    with ho.checking(raises=True) as checked:
        verdict = ho.check(wrong, np.float32([1e38]))
    assert not verdict and not checked.verdicts
    with ho.checking(raises=True) as checked, pytest.raises(ho.Miscompile):
        jax.jit(fine)(jax.jit(wrong)(np.float32([1e38])))
    assert len(checked.verdicts) == 1


def test_an_error_of_this_package_stays_what_it_is() -> None:
    """A miscompile that is proven while a function is traced, or run, is no failure of JAX."""

    def raises(x: Any) -> Any:
        raise ArgumentError("proven")

    with pytest.raises(ArgumentError, match="^proven"):
        ho.run(raises, np.float32(1))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"every": 0}, "every=0"),
        ({"every": "a"}, "every='a'"),
        ({"names": "("}, "names="),
        ({"names": 3}, "names=3"),
    ],
)
def test_bad_options(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        ho.checking(**given)


SCRIPT = """
import sys
import jax, jax.numpy as jnp, numpy as np
@jax.jit
def train_step(x, k):
    return x / jnp.float32(2e38), jax.random.key_data(k), x.astype(jnp.bfloat16)
for n in range(3):
    train_step(np.float32([1, 1e38]) if n else np.float32([1, 1]), jax.random.key(n))
print(sys.argv[1:], __name__)
"""


def test_a_script_is_recorded_and_judged_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "hlo_oracle.record", "-o", "calls", "--every", "2"]
    command += ["--names", "train", "train.py", "--epochs", "3"]
    for count in (2, 0):  # the second run goes on where the first one ended
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout == "['--epochs', '3'] __main__\n"
        assert done.stderr.splitlines()[-1] == f"calls: {count} calls recorded"
        assert done.returncode == 0
    first, second = sorted((tmp_path / "calls").iterdir())
    assert first.name.startswith("jit_train_step.") and second.name.endswith(".000002")
    facts = json.loads((first / "facts.json").read_text())
    assert (facts["name"], facts["call"], facts["budget"]) == ("jit_train_step", 0, "XLA:CPU 0.10")
    assert main(["check", "--no-c", "--json", str(tmp_path / "calls")]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["status"] for row in rows] == [0, 1]
    assert rows[1]["verdicts"]["outside"] == 1
    # Without the last file a call is not there.
    (second / "facts.json").unlink()
    assert main(["check", "--no-c", str(tmp_path / "calls")]) == 0
    assert first.name in capsys.readouterr().out


def test_bad_recordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(Error, match="no directory to record in"),
        ho.record(tmp_path / "file" / "x"),
    ):
        pass
    with ho.record(tmp_path / "calls", names="fine", most_bytes=4) as recording:
        jax.jit(fine)(np.ones(9, np.float32))
    assert (recording.calls, recording.too_large) == (0, 1)
    with ho.record(tmp_path / "calls", names="fine") as recording:
        jax.jit(fine)(np.ones(9, np.float32))
    assert recording.calls == 1
    (facts,) = tmp_path.glob("calls/*/facts.json")
    facts.write_text("[]")
    assert main(["check", str(tmp_path / "calls")]) == 2
    assert "not the facts of a recorded call" in capsys.readouterr().err


TESTS = """
import numpy as np, jax, jax.numpy as jnp
def wrong(x):
    return x / jnp.float32(2e38)
def test_checked(hlo_check):
    assert hlo_check(jnp.sin, np.float32(1)).equal + hlo_check(jnp.sin, np.float32(1)).within
def test_wrong(hlo_check):
    hlo_check(wrong, np.float32([1e38]))
def test_prints():
    jax.jit(lambda wrong: jax.debug.print("{x}", x=wrong))(np.float32(1))
def test_jit():
    jax.jit(wrong)(np.float32([1e38]))
def test_jit_is_right():
    assert jax.jit(wrong)(np.float32([1])) >= 0
"""


@pytest.mark.parametrize("asked", [False, True])
def test_the_plugin_of_pytest(tmp_path: Path, asked: bool) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    options = ["--hlo-check", "--hlo-check-names", "wrong", "--hlo-check-every", "1"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rf"]
    plugin = ["-p", "hlo_oracle.pytest_plugin", "-p", "no:hlo_oracle", *(options if asked else [])]
    done = subprocess.run(
        [*command, *plugin, str(tmp_path)], capture_output=True, text=True, check=False
    )
    lines = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    failed = {line.rpartition("::")[2] for line in lines}
    assert failed == ({"test_wrong", "test_jit"} if asked else {"test_wrong"})
    assert ("2 calls judged, 1 proven wrong, 0 not judged" in done.stdout) == asked
    assert "0.0, where 0.5 is exact" in done.stdout


def test_a_recording_needs_a_path() -> None:
    with pytest.raises(ArgumentError, match="a directory to record in is a path, not NoneType"):
        ho.record(None)  # type: ignore[arg-type]
