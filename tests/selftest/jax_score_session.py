"""Run a handful of cases of the score in one process; each public function has one, or a reason."""

from __future__ import annotations

import numpy as np

from selftest.jax_score.examiner import case_runner
from selftest.scoring.outcomes import PASSED

WANTED = {
    ("lax.add", "float32 [3,4]×[3,1] of the records"),
    ("jax.numpy", "jnp.cumsum(x, axis=1) float32 small"),
    ("jax.numpy", "grad of jnp.sinh(x) float32 small"),
    ("jax.random", "jax.random.key(5)"),
    ("control flow", "lax.scan(lambda c, a: (c + a, c * 2), vector, x) int32 small"),
}

with case_runner("fast", "x32") as work:
    names = work()
    assert len(set(names)) == len(names)  # one name, one case
    outcomes = [work(*name) for name in WANTED]
    assert [one.status for one in outcomes] == [PASSED] * len(WANTED), outcomes
    from selftest.jax_score.comparison import difference
    from selftest.jax_score.coverage import not_called

    assert not_called({group for group, _ in names}) == []
    one = np.float32([1, 2])
    assert difference(one, one + np.float32(1e-7), None) == ("", False)
    assert difference(one, one + np.float32(1e-3), None)[1]
    assert "float64" in difference(one, np.float64(one), None)[0]
    assert "PyTreeDef" in difference((one,), [one], None)[0]
print("as expected")
