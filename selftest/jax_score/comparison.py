"""Compare results as JAX's tests compare, and judge those that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import dtypes
from jax._src.test_util import JaxTestCase

import hlo_oracle
from hlo.errors import Error
from selftest.scoring.pages import elements, verdicts

_TEST: Any = JaxTestCase()  # without types
_BUDGETS = {"hlo_oracle": "fast", "cpu": None}  # None: that of XLA:CPU


def difference(found: Any, wanted: Any, tolerance: Any) -> tuple[str, bool]:
    """Describe how results differ in structure, type, weak type, shape or by more than the
    tolerance (empty if they do not), and whether only by values."""
    ours, theirs = (str(jax.tree.structure(one)) for one in (found, wanted))
    if ours != theirs:
        return f"{ours}, where XLA:CPU gives {theirs}", False
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted)):
        kinds = [_kind(one) for one in (mine, other)]
        weak = [getattr(one, "weak_type", False) for one in (mine, other)]
        if kinds[0] != kinds[1] or weak[0] != weak[1]:
            return f"{kinds[0]}, where XLA:CPU gives {kinds[1]}", False
        try:
            _TEST.assertAllClose(_plain(mine), _plain(other), atol=tolerance, rtol=tolerance)
        except AssertionError as error:
            return str(error), True
    return "", False


def _kind(value: Any) -> str:
    """Format an array's type and shape as JAX does; for other objects, the Python type."""
    aval = getattr(value, "aval", None)
    return str(np.asarray(value).dtype if aval is None else aval)


def _plain(value: Any) -> Any:
    """Convert to an array of numbers: for a random key, its words."""
    is_key = hasattr(value, "dtype") and jnp.issubdtype(value.dtype, dtypes.prng_key)
    return np.asarray(jax.random.key_data(value)) if is_key else value


def legality(call: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """Judge the results of both platforms, jitted, against the exact ones."""
    lines = []
    for platform, budget in _BUDGETS.items():
        try:
            with jax.default_device(jax.devices(platform)[0]):
                verdict = hlo_oracle.check(call, *arguments, budget=budget)
        except Error as error:
            lines.append((platform, f"not judged, {error}"))
        else:
            lines.append((platform, elements(verdict)))
    return verdicts(lines)
