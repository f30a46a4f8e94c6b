"""Run a handful of cases of the score in one process, one of each status."""

from __future__ import annotations

from selftest.scoring.outcomes import PASSED, REFUSED
from selftest.torch_score.examiner import case_runner
from selftest.torch_score.table import DATA, EAGER, RANDOM, SPARSE, UNSPECIFIED
from selftest.torch_score.unspecified import table

WANTED = {
    ("add", "sample 3"): PASSED,
    ("nn.functional.batch_norm", "sample 0"): PASSED,  # it writes its statistics
    ("gradient of tanh", "sample 0"): PASSED,
    ("linalg.eigvalsh", "sample 0"): REFUSED,
    ("bernoulli", "sample 0"): RANDOM,
    ("nonzero", "sample 1"): DATA,
    ("to_sparse", "sample 0"): SPARSE,
    ("jiterator_unary", "sample 0"): EAGER,
    ("linalg.inv", "sample 3"): PASSED,  # checked by PyTorch
}

with case_runner("fast", "float32") as work:
    outcomes = [work(*name) for name in WANTED]
    assert [one.status for one in outcomes] == list(WANTED.values()), outcomes
    assert work("empty", "sample 0").status in (UNSPECIFIED, PASSED)  # memory may be zero
    import torch

    from selftest.torch_score.cases import names, operation_of
    from selftest.torch_score.comparison import difference, tolerance_of

    groups = {group for group, _ in names("bool")}
    assert "logical_not" in groups and "gradient of logical_not" not in groups
    assert all(operation_of(group) for group in table())  # raises KeyError
    one, default = torch.ones(2), tolerance_of(operation_of("cos"), torch.int64)
    assert default == (0, 0)
    assert difference([one], [one + 1e-7], default) == ("", False)
    assert difference([one], [one + 1e-3], default)[1]
    assert not difference([one], [one + 1e-3], default, [0])[0]
    assert "float64" in difference([one], [one.double()], default, [0])[0]
    assert difference([one, one], [one], default)[0]
    assert min(tolerance_of(operation_of("nn.functional.conv3d"), torch.float32)) > 0
print("as expected")
