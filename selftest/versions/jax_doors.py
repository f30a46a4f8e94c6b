"""Ways from JAX into this project, by the version of JAX that is installed.

``python -m selftest.versions.jax_doors [NAME ...]`` tries them (:mod:`selftest.versions.doors`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

import hlo_oracle as ho
from selftest.versions.doors import Door, checked, told

X = np.linspace(-3, 3, 60, dtype=np.float32).reshape(5, 12)
_HLO = """HloModule m
ENTRY e {
  x = f32[5]{0} parameter(0)
  y = f32[5]{0} exponential(x)
  ROOT r = f32[5]{0} add(y, x)
}
"""
_PLUGIN = """
import jax, jax.numpy as jnp
x = jnp.arange(12.0).reshape(3, 4)
print(jax.jit(lambda x: jax.nn.softmax(x @ x.T))(x), jax.grad(lambda x: jnp.tanh(x).sum())(x))
print(jax.random.normal(jax.random.PRNGKey(0), (3,)), jnp.linalg.eigh(x @ x.T)[0])
assert jax.devices()[0].platform == "hlo_oracle", jax.devices()
"""
_TEST = """
import jax, jax.numpy as jnp, numpy as np
def test_f(hlo_check):
    hlo_check(jax.jit(lambda x: jnp.sin(x)), np.ones(3, "f4"))
"""


def f(x: Any) -> Any:
    """Compute attention's scores, and sums."""
    return jax.nn.softmax(jnp.tanh(x) @ x.T, axis=-1), x.sum(0)


def _scanned(x: Any) -> Any:
    return jax.lax.scan(lambda carry, row: (carry * 0.5 + row, jnp.sin(carry)), x[0], x)


def _recorded() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with ho.record(directory):
            jax.jit(lambda x: x * 2 + 1)(X)
        if not list(Path(directory).iterdir()):
            raise AssertionError("nothing was recorded")
        _command("check", directory)


def _observed() -> None:
    with ho.checking():
        jax.jit(lambda x: jnp.exp(x) * 2 + 1)(X).block_until_ready()


def _exported() -> None:
    shape = _described(*X.shape)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "exported"
        file.write_bytes(export.export(jax.jit(f))(shape).serialize())
        ho.load(file)


def _described(*dims: Any) -> Any:
    return jax.ShapeDtypeStruct(dims, X.dtype)  # type: ignore[no-untyped-call]


def _symbolic() -> None:
    (rows,) = export.symbolic_shape("n")
    made = export.export(jax.jit(f))(_described(rows, 12))
    ho.run(made, X)


def _command(*words: str) -> None:
    """Run a command of ``hlo``; raise AssertionError with what it told if it failed."""
    _process([sys.executable, "-m", "hlo_oracle.command.main", *words])


def _against_xla() -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "a.hlo"
        file.write_text(_HLO, "utf-8")
        _command("check", str(file), "--against", "xla")


def _fuzzed() -> None:
    with tempfile.TemporaryDirectory() as directory:
        words = ["--oracle", "xla", "--programs", "20", "--seed", "1", "--reduce", "0.1"]
        _process(
            [
                sys.executable,
                "-m",
                "hlo_oracle.command.main",
                "fuzz",
                *words,
                "--corpus",
                directory,
            ],
            (0, 1),  # 1: there are findings
        )
        if not list(Path(directory).glob("chunks/*")):
            raise AssertionError("no program was tried")


def _plugin() -> None:
    _process([sys.executable, "-c", _PLUGIN], JAX_PLATFORMS="hlo_oracle")


def _pytest() -> None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "test_f.py").write_text(_TEST, "utf-8")
        words = ["-q", "--hlo-check", "-p", "no:cacheprovider", f"--rootdir={directory}", directory]
        _process([sys.executable, "-m", "pytest", *words])


def _process(words: Sequence[str], statuses: Sequence[int] = (0,), **environ: str) -> None:
    done = subprocess.run(
        words, capture_output=True, check=False, env={**os.environ, **environ}, timeout=300
    )
    if done.returncode not in statuses:
        told = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        raise AssertionError(f"exit status {done.returncode}: {' / '.join(told[-3:])}")


DOORS: dict[str, Door] = {
    "ho.check": checked(f, X),
    "ho.check of a jitted function": checked(jax.jit(f), X),
    "ho.check of a gradient": checked(jax.grad(lambda x: f(x)[0][0, 1]), X),
    "ho.check of a scan": checked(_scanned, X),
    "ho.check with a key": checked(lambda key: jax.random.normal(key, (7,)), jax.random.PRNGKey(3)),
    "ho.check with a typed key": checked(
        lambda key: jax.random.normal(key, (7,)), jax.random.key(3)
    ),
    "ho.check of eigenvectors": checked(lambda x: jnp.linalg.eigh(x @ x.T), X),
    "ho.check of a solution": checked(lambda x: jnp.linalg.solve(x[:, :5] + 5 * jnp.eye(5), x), X),
    "ho.run": lambda: ho.run(f, X),
    "ho.load of a function": lambda: ho.load(f, X),
    "ho.load of Traced": lambda: ho.load(jax.jit(f).trace(X)),
    "ho.load of Lowered": lambda: ho.load(jax.jit(f).lower(X)),
    "ho.load of Compiled": lambda: ho.load(jax.jit(f).lower(X).compile()),
    "ho.load of StableHLO": lambda: ho.load(jax.jit(f).lower(X).as_text()),
    "ho.load of jax.export": _exported,
    "ho.run of symbolic shapes": _symbolic,
    "ho.compile": lambda: ho.compile(f, X)(X),
    "ho.jit": lambda: ho.jit(f)(X),
    "ho.record, hlo check": _recorded,
    "ho.checking": _observed,
    "pytest --hlo-check": _pytest,
    "hlo check --against xla": _against_xla,
    "hlo fuzz": _fuzzed,
    "JAX_PLATFORMS=hlo_oracle": _plugin,
}


if __name__ == "__main__":
    told(DOORS)
