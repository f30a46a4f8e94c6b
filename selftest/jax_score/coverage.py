"""Find JAX's public functions that no case calls and that left_out.txt does not list with a
reason."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import jax.scipy.optimize
from jax import lax

_HERE = Path(__file__).parent
_MODULES: dict[str, ModuleType] = {
    "jax.lax": lax,
    "jax.lax.linalg": lax.linalg,
    "jax.numpy": jnp,
    "jax.numpy.fft": jnp.fft,
    "jax.numpy.linalg": jnp.linalg,
    "jax.scipy.cluster.vq": jsp.cluster.vq,
    "jax.scipy.fft": jsp.fft,
    "jax.scipy.integrate": jsp.integrate,
    "jax.scipy.linalg": jsp.linalg,
    "jax.scipy.ndimage": jsp.ndimage,
    "jax.scipy.optimize": jax.scipy.optimize,
    "jax.scipy.signal": jsp.signal,
    "jax.scipy.sparse.linalg": jsp.sparse.linalg,
    "jax.scipy.special": jsp.special,
    "jax.scipy.stats": jsp.stats,
    "jax.nn": jax.nn,
    "jax.nn.initializers": jax.nn.initializers,
    "jax.image": jax.image,
    "jax.random": jax.random,
    "jax.ops": jax.ops,
    "jax.tree": jax.tree,
}


def not_called(groups: Collection[str]) -> list[str]:
    """List functions by their full names; ``groups`` are the groups of the cases of primitives."""
    text = "".join(path.read_text() for path in sorted((_HERE / "tables").glob("*.txt")))
    words = set(re.findall(r"\w+", text)) | {group.removeprefix("lax.") for group in groups}
    reasons = (_HERE / "left_out.txt").read_text().splitlines()
    told = {line.partition(":")[0] for line in reasons}
    return [
        name
        for module, of in _MODULES.items()
        for function in dir(of)
        if function not in words and _is_function(of, function)
        if (name := f"{module}.{function}") not in told
    ]


def _is_function(module: ModuleType, name: str) -> bool:
    """Test for a public function: not a type, a primitive, or deprecated."""
    if name.startswith("_"):
        return False
    value = getattr(module, name, None)
    return callable(value) and not inspect.isclass(value) and not name.endswith("_p")
