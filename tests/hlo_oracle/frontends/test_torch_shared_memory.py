"""Results of compiled functions that share memory, lie in it, and can be written, as eager's.

Without PyTorch all of it is one skipped line; docs/torch.md says how to run it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch import graph_compiler  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.strided import place_of_view  # noqa: E402 (after the skip)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    graph_compiler.HISTORY.clear()
    yield
    torch._dynamo.reset()


def compiled(function: Any, **named: Any) -> Any:
    return torch.compile(function, backend=ho.torch.backend, **named)


def numbers(*sizes: int) -> Any:
    count = int(torch.tensor(sizes).prod())
    return torch.arange(float(count)).reshape(sizes)


def complexes(*sizes: int) -> Any:
    return torch.complex(numbers(*sizes), numbers(*sizes) + 1)


def places(results: Any, *given: Any) -> list[Any]:
    """Describe where each tensor lies: its sizes, strides, offset, and the number of its memory,
    that of arguments first."""
    memory: dict[int, int] = {}
    found = []
    for x in torch.utils._pytree.tree_leaves([given, results]):
        memory_of = x.untyped_storage().data_ptr() if x.numel() else 0
        number = memory.setdefault(memory_of, len(memory))
        found.append((tuple(x.shape), x.stride(), x.storage_offset(), number, x.is_conj()))
    return found


def assert_lies_as_eager(
    function: Callable[..., Any], given: Any, *, dynamic: bool = False
) -> None:
    one, other = (torch.empty_strided(given.shape, given.stride(), dtype=given.dtype).copy_(given)
                  for _ in range(2))  # fmt: skip
    expected, actual = function(one), compiled(function, dynamic=dynamic)(other)
    torch.testing.assert_close(actual, expected)
    assert torch.equal(other, one)
    assert places(actual, other) == places(expected, one)


VIEWS: list[tuple[Callable[[Any], Any], Any]] = [
    (lambda y: (y[0], y.view(-1)), numbers(2, 3)),
    (lambda y: y.chunk(2, -1), numbers(3, 4)),
    (lambda y: y.split([1, 2]), numbers(3, 4)),
    (lambda y: y.unbind(0), numbers(3, 4)),
    (lambda y: y[:, :1].expand(3, 6), numbers(3, 4)),
    (lambda y: (y.diagonal(), y.unfold(1, 2, 1)), numbers(3, 4)),
    (lambda y: (y.as_strided((2, 2), (3, 1), 2), y), numbers(3, 4)),
    (lambda y: (y.t()[1:], y.reshape(-1)[3:], y), numbers(3, 4).t()),
    (lambda y: y[1:].t()[1:].unbind(0)[1].split(1), numbers(3, 4)),
    (lambda y: (y[None].squeeze(0)[..., None], y.unflatten(1, (2, 2))[:, 1]), numbers(3, 4)),
    (lambda y: (y.view(torch.int32)[1:], y.view(torch.int16)), numbers(3, 4)),
    (lambda y: (y.real, y.imag, torch.view_as_real(y)[1:]), complexes(3, 4)),
    (lambda y: (y.conj(), y.mH[1:]), complexes(3, 4)),
    (lambda y: torch.view_as_complex(y.view(3, 2, 2))[1:], numbers(3, 4)),
    (lambda y: (y[0], y[1].exp(), y.sum(), y.flatten(), y, y), numbers(3, 4)),
    (lambda y: torch.linalg.eigvalsh(y @ y.T)[1:], numbers(2, 3)),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("case", range(len(VIEWS)))
def test_views_share_the_memory_of_what_they_are_views_of(case: int, dynamic: bool) -> None:
    views, given = VIEWS[case]
    assert_lies_as_eager(lambda x: views(x * 2 + 1), given, dynamic=dynamic)


def test_a_write_into_one_result_is_seen_in_those_that_share_its_memory() -> None:
    def function(x: Any) -> Any:
        y = x * 2 + 1
        return y[0], y.view(-1), y.clone()

    row, flat, copy = compiled(function)(torch.zeros(2, 3))
    row.add_(100)
    assert flat.tolist() == [101, 101, 101, 1, 1, 1]
    assert copy.flatten().tolist() == [1] * 6


def test_arguments_that_share_memory_are_written_and_returned_as_eager_does() -> None:
    def returned(p: Any, q: Any) -> Any:
        p.add_(1)
        return q

    def both(p: Any, q: Any) -> Any:
        return p.add_(1), q.mul_(2), p + q

    for function in (returned, both):
        torch._dynamo.reset()
        one, other = numbers(4, 2), numbers(4, 2)
        expected = function(one[:3], one[1:])
        actual = compiled(function)(other[:3], other[1:])
        torch.testing.assert_close(actual, expected)
        assert torch.equal(other, one)
        assert places(actual, other) == places(expected, one)


@pytest.mark.parametrize("dynamic", [False, True])
def test_views_of_an_argument_that_is_written_lie_in_it(dynamic: bool) -> None:
    def function(x: Any) -> Any:
        x[0] = x[1] * 3
        return x[1:], x.t()[1], x

    for given in (numbers(3, 4), numbers(3, 4)[:, :3], numbers(4, 3).t(), numbers(4, 4)[::2]):
        torch._dynamo.reset()
        assert_lies_as_eager(function, given, dynamic=dynamic)


def test_views_of_a_result_with_a_gradient_share_its_memory() -> None:
    """AOTAutograd returns what they are views of, too, and makes views of that by their strides and
    their offset."""

    def function(x: Any) -> Any:
        y = x.sin() * 2
        return y[1:], y.t()[1], y.unbind(1)[0]

    one, other = (numbers(3, 4).requires_grad_() for _ in range(2))
    expected, actual = function(one), compiled(function)(other)
    torch.testing.assert_close(actual, expected)
    assert places(actual, other) == places(expected, one)
    for results in (expected, actual):
        sum(x.square().sum() for x in results).backward()
    torch.testing.assert_close(other.grad, one.grad)


def test_copies_of_views_that_are_written_in_part_have_their_gaps() -> None:
    """A view that PyTorch makes of the result by its strides would else lie elsewhere."""

    def function(x: Any) -> Any:
        return torch.slice_scatter(x, x[:1] * 2 + 1, 0, 0, 1)[1:]

    assert_lies_as_eager(function, numbers(3, 4)[:, :3])


@pytest.mark.parametrize(
    "given",
    [
        torch.zeros(0, 6), torch.zeros(3, 0, 2), torch.zeros(3, 4)[:, :1], torch.zeros(()),
        torch.zeros(4, 1, 3, 3).contiguous(memory_format=torch.channels_last),
        torch.zeros(5, 1, 7).transpose(0, 2),
    ],
)  # fmt: skip
def test_strides_of_dimensions_of_one_element_and_of_none_are_eager_s(given: Any) -> None:
    assert_lies_as_eager(lambda x: x * 2 + 1, given)


@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (3, 2, 2, 6)])
def test_symbolic_sizes_keep_the_order_of_dimensions(sizes: Any) -> None:
    image = torch.randn(sizes).contiguous(memory_format=torch.channels_last)
    function = compiled(lambda x: (x * 2 + 1, x.exp()[1:] * 2), dynamic=True)
    for y in (*function(image), *function(image[:, :2].clone())):
        assert y.is_contiguous(memory_format=torch.channels_last)


def test_views_by_strides_in_the_middle_are_read_by_c() -> None:
    def function(x: Any) -> Any:
        y = x.t().as_strided((2, 2), (3, 1), 2)
        return y.exp() + x.as_strided((2, 1, 2), (1, 7, 2), 1)

    for given in (numbers(3, 4), numbers(4, 3).t()):
        torch._dynamo.reset()
        assert_lies_as_eager(function, given)
        assert not ho.torch.explain().eager


def test_where_a_view_by_strides_lies() -> None:
    x = numbers(4, 6)
    assert place_of_view(x.t(), (2, 2), (6, 1), 3) == ((1, 0), 3)
    assert place_of_view(x[1:], (2, 2), (6, 1), 7) == ((0, 1), 1)
    assert place_of_view(x[1:], (2, 2), (6, 1)) == ((0, 1), 0)
    assert place_of_view(x[1:], (2, 2), (6, 1), 5) is None  # before it
    assert place_of_view(x, (5,), (5,), 4) is None  # beyond it
    assert place_of_view(x[:, :2], (2,), (1,), 0) is None  # gaps
