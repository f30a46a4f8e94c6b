"""Explanations of compiled functions: their operations, stages and graph breaks.

Without PyTorch all of it is one skipped line; docs/torch.md says how to run it.
"""

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo.errors import ArgumentError  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.explanation import EagerNode, GraphReport  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_a_graph_break_is_named_with_its_reason_and_line() -> None:
    def positive(x: Any) -> Any:
        return x[x > 0] * 2 + 1  # the line that is named

    found = ho.torch.explain(positive, torch.ones(3, 4))
    (one,) = found.breaks
    first = positive.__code__.co_firstlineno
    assert one.line == f"{__file__}:{first + 1}"
    assert "depends on input Tensor data" in one.why
    assert "graph break at " in str(found)
    assert not ho.torch.explain(lambda x: x.sin() * 2, torch.ones(3)).breaks


def test_a_function_that_is_given_up_as_a_whole_says_why() -> None:
    found = ho.torch.explain(torch.nn.LSTM(4, 5), torch.ones(3, 4))
    assert str(found).startswith("0 graphs: nothing became C\ngraph break")
    assert "LSTM" in found.breaks[0].why


def test_operations_of_stages_that_are_too_small_are_pytorch_s() -> None:
    found = ho.torch.explain(lambda x: x.sin().t(), torch.ones(3, 4))
    (node,) = found.eager
    assert (node.op, node.line.startswith(__file__)) == ("aten.sin.default", True)
    assert "1 operation by PyTorch:\n    aten.sin.default at " in str(found)
    assert "none" not in str(found)


def test_what_has_no_c_is_named_by_what_it_computes() -> None:
    found = ho.torch.explain(lambda x: torch.linalg.svdvals(x * 2 + 1), torch.eye(3))
    assert [node.why for node in found.eager] == ["no C for singular values"]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ArgumentError, match="takes a function or a module, not 3"):
        ho.torch.explain(3)


def test_reports_count_in_the_singular_and_plural() -> None:
    left = EagerNode("aten.sin.default", "why", "a.py:1")
    for report, line in (
        (GraphReport("forward", (6, 2), ()),
         "forward: 6 + 2 operations in 2 stages of C, none by PyTorch"),
        (GraphReport("forward", (1,), (left, left)),
         "forward: 1 operation in 1 stage of C, 2 operations by PyTorch:\n"
         "    aten.sin.default at a.py:1 (2 times): why"),
        (GraphReport("backward", (), ()), "backward: no stage of C, and nothing to compute"),
    ):  # fmt: skip
        assert str(report) == line
