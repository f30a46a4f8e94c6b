"""torch.compile with this backend: results, gradients, randomness, memory, fallback.

Without PyTorch all of it is one skipped line; docs/torch.md says how to run it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

import torch.nn.functional as F  # noqa: E402 (after the skip)
from torch import nn  # noqa: E402 (after the skip)

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo.errors import ArgumentError, Unsupported  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch import graph_compiler  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch.tensors import array_of, order_of, tensor_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    graph_compiler.HISTORY.clear()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(function: Any, **named: Any) -> Any:
    return torch.compile(function, backend=ho.torch.backend, **named)


def assert_same(function: Callable[..., Any], *arguments: Any) -> None:
    """Compare a function's results with eager ones, and the types, sizes and strides."""
    expected, actual = function(*arguments), compiled(function)(*arguments)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5, check_stride=True)
    assert not ho.torch.explain().eager


def small_cnn() -> Any:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.25), nn.Flatten(), nn.Linear(16, 3),
    )  # fmt: skip


def test_a_training_step_has_eager_s_gradients_dropout_and_statistics() -> None:
    """A compiled training step drops the same elements as an eager one with the same seed, and
    updates running statistics once."""
    x, target = torch.randn(3, 2, 4, 4), torch.tensor([0, 2, 1])
    one, other = small_cnn(), small_cnn()
    other.load_state_dict(one.state_dict())
    for model, called in ((one, one), (other, compiled(other))):
        torch.manual_seed(5)
        F.cross_entropy(called(x), target).backward()
        assert model[1].num_batches_tracked == 1
    for (name, p), q in zip(one.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(q.grad, p.grad, rtol=1e-4, atol=1e-5, msg=name)
    torch.testing.assert_close(other[1].running_var, one[1].running_var)
    report = ho.torch.explain()
    assert [graph.kind for graph in report.graphs] == ["forward", "backward"]
    assert [node.op for node in report.eager] == ["aten.bernoulli.p"]
    assert "torch.manual_seed" in str(report)


def test_a_step_through_attention_as_transformers_write_it() -> None:
    """The fused kernel, whose result and saved tensors PyTorch lays out in its own way."""
    one, other = (nn.Linear(16, 48) for _ in range(2))
    other.load_state_dict(one.state_dict())

    def attention(x: Any, linear: Any) -> Any:
        q, k, v = linear(x).view(2, 6, 3, 4, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + y.transpose(1, 2).reshape(2, 6, 16)

    x = torch.randn(2, 6, 16)
    for linear, function in ((one, attention), (other, compiled(attention))):
        function(x, linear).square().sum().backward()
    torch.testing.assert_close(other.weight.grad, one.weight.grad, rtol=1e-4, atol=1e-4)


def test_operations_whose_decomposition_is_wrong_are_not_decomposed() -> None:
    """PyTorch registers it with Autograd, too, and has it again where this backend is done."""
    target = torch.tensor([[1, 0, -1], [-1, 0, 0]])
    op = torch.ops.aten.multilabel_margin_loss_forward.default
    before = dict(op.py_kernels)
    for needs_gradient in (False, True):
        x = torch.tensor([[0.1, 0.5, 0.3], [2, 1, 0]], requires_grad=needs_gradient)
        assert_same(lambda x: F.multilabel_margin_loss(x * 1, target), x)
    assert op.py_kernels == before


def test_products_with_powers_of_two_that_are_subnormal_are_rounded_once() -> None:
    for dtype, x, exponent in (
        (torch.float32, [1.5, 1.25, 1e-40], [-149, -127, 200]),
        (torch.float64, [1 + 2**-52, 1e-310], [-1073, 1100]),
    ):
        given = torch.tensor(x, dtype=dtype), torch.tensor(exponent)
        actual = compiled(lambda x, exponent: torch.ldexp(x * 1, exponent))(*given)
        assert actual.tolist() == torch.ldexp(*given).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_random_numbers_are_those_of_the_seed(dtype: Any) -> None:
    def noisy(x: Any) -> Any:
        return F.dropout(x, 0.5) + torch.rand_like(x) * torch.randn(8) * x.sigmoid().bernoulli()

    x = torch.randn(8, 8, dtype=dtype)
    torch.manual_seed(3)
    expected = noisy(x)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(noisy)(x), expected)


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
              torch.float32, torch.float64, torch.complex64]
)  # fmt: skip
def test_types(dtype: Any) -> None:
    x = (torch.arange(12).reshape(3, 4) % 5).to(dtype)

    def function(x: Any) -> Any:
        return x * x, x == 2, x.to(torch.float32), torch.where(x == 0, x, x), x.sum(), None, 7

    if dtype.is_complex:
        torch.testing.assert_close(compiled(torch.sin)(x), torch.sin(x))
    else:
        assert_same(function, x)


def test_inputs_that_are_not_contiguous_and_results_as_eager_lays_them_out() -> None:
    x = torch.randn(6, 8)

    def function(x: Any) -> Any:
        return (x.t() * 2).sum(0), x * 3, (x + 1).t()

    for view in (x, x.t(), x[::2, 1:5], x[:1].expand(4, 8), x[2]):
        torch._dynamo.reset()
        expected = function(view)
        torch.testing.assert_close(compiled(function)(view), expected)
    image = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert_same(lambda y: y * 2 + 1, image)


def test_writes_into_arguments_are_seen() -> None:
    def function(x: Any, y: Any) -> Any:
        x.add_(1)
        y[:2] = x[:2] * 3
        x.mul_(2)
        return x + y

    expected = torch.randn(4), torch.randn(4)
    given = tuple(x.clone() for x in expected)
    value = function(*expected)
    torch.testing.assert_close(compiled(function)(*given), value)
    torch.testing.assert_close(given, expected)


def test_sizes_that_change_are_compiled_each_and_never_crash() -> None:
    def attention(x: Any) -> Any:
        return F.scaled_dot_product_attention(x, x, x, is_causal=True).flatten(1), x.shape[1] * 2

    dynamic = compiled(attention, dynamic=True)
    for length in (3, 5, 4, 5):
        x = torch.randn(2, length, 6)[:, None].requires_grad_()
        y = x.detach().clone().requires_grad_()
        (expected, size), (actual, given) = attention(x), dynamic(y)
        expected.square().sum().backward()
        actual.square().sum().backward()
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(y.grad, x.grad, rtol=1e-4, atol=1e-5)
        assert size == given


def test_what_does_not_convert_is_run_by_torch_and_named_with_its_line() -> None:
    def function(x: Any) -> Any:
        values = torch.linalg.eigvalsh(x @ x.T + 1)  # the line that is named
        return torch.tanh(values * 2) + 1

    x = torch.randn(3, 3)
    torch.testing.assert_close(compiled(function)(x), function(x))
    (node,) = ho.torch.explain().eager
    assert "eigh" in node.op
    assert node.line.startswith(__file__)
    assert ho.torch.explain(function, x).graphs[0].compiled == (3, 3)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="eigh.*test_torch_compile.py:") as caught:
        compiled(function, options={"fallback": False})(x)
    assert isinstance(caught.value.__cause__ or caught.value, Unsupported | RuntimeError)


def test_options_are_checked_and_exact_numerics_have_the_interpreter_s_bits() -> None:
    x = torch.randn(5, 7)

    def function(x: Any) -> Any:
        return torch.softmax(x @ x.T, -1)

    exact = compiled(function, options={"numerics": "exact"})(x)
    module = ho.load(ho.torch.explain().graphs[0].stages[0].texts[0])
    assert torch.equal(torch.from_numpy(ho.run(module, x.numpy())), exact)
    with pytest.raises(ArgumentError, match="option 'speed': there are numerics"):
        graph_compiler.Options.of({"speed": 1})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn])
def test_tensors_and_arrays_share_memory(dtype: Any) -> None:
    tensor = torch.zeros(4, 6).to(dtype).t()
    array = array_of(tensor)
    assert array.__array_interface__["data"][0] == tensor.data_ptr()
    assert array.shape == (6, 4)
    back = tensor_of(array)
    assert (back.data_ptr(), back.dtype, back.stride()) == (tensor.data_ptr(), dtype, (1, 6))


@pytest.mark.parametrize(
    ("sizes", "strides", "order"),
    [
        ((2, 3), (3, 1), (0, 1)),
        ((2, 3), (1, 2), (1, 0)),
        ((2, 3, 4, 5), (60, 1, 15, 3), (0, 2, 3, 1)),  # channels last
        ((2, 3), (6, 1), (0, 1)),  # gaps: copied
        ((4, 3), (0, 1), (0, 1)),  # expanded: copied
        ((1, 3), (1, 1), (0, 1)),
    ],
)
def test_the_order_of_dimensions_in_memory(sizes: Any, strides: Any, order: Any) -> None:
    assert order_of(sizes, strides) == order


@pytest.mark.parametrize(
    "made", [lambda f: f, torch.compile, compiled], ids=["eager", "inductor", "c"]
)
def test_results_are_judged_whoever_runs_the_model(made: Any) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    verdict = ho.check(made(model), torch.randn(4, 8))
    assert verdict and not verdict.undetermined, verdict
    assert verdict.peer.startswith("PyTorch")


def test_gradients_and_writes_are_judged_by_their_paths() -> None:
    def gradients(x: Any, weight: Any) -> Any:
        x += 1
        loss = F.cross_entropy(x @ weight, torch.tensor([1, 0, 2, 3]))
        return {"loss": loss, "gradient": torch.autograd.grad(loss, [weight])}

    verdict = ho.check(gradients, torch.randn(4, 8), torch.randn(8, 4, requires_grad=True))
    assert verdict and not verdict.undetermined, verdict
    assert [leaf.path for leaf in verdict.leaves] == ["['loss']", "['gradient'][0]"]


def test_a_wrong_result_is_proven_and_random_ones_are_refused() -> None:
    calls = []

    def changing(x: Any) -> Any:
        calls.append(x)
        return x.exp() + (1e-3 if len(calls) > 1 else 0)

    verdict = ho.check(changing, torch.randn(4, 8))
    assert not verdict and verdict.outside == 32
    with pytest.raises(Unsupported, match="torch.manual_seed"):
        ho.check(lambda x: F.dropout(x, 0.5), torch.ones(3))


def test_torch_finds_the_backend_by_its_name() -> None:
    from importlib.metadata import entry_points

    found = entry_points(group="torch_dynamo_backends", name="hlo_oracle")
    if not found:
        pytest.skip("this tree is not installed: no entry points")
    assert next(iter(found)).load() is ho.torch.backend
    torch.testing.assert_close(
        torch.compile(torch.sin, backend="hlo_oracle")(torch.ones(3)), torch.ones(3).sin()
    )


def test_attention_without_dropout_reads_no_random_numbers() -> None:
    def attention(q: Any, p: float) -> Any:
        return F.scaled_dot_product_attention(q, q, q, dropout_p=p) * 2  # alone it is PyTorch's

    q = torch.randn(1, 2, 4, 8)
    assert not ho.torch.explain(attention, q, 0.0).eager
    assert ho.check(attention, q, 0.0)
    with pytest.raises(Unsupported, match="generator of random numbers"):
        ho.check(attention, q, 0.5)


@pytest.mark.parametrize("is_transposed", [False, True])
def test_systems_are_solved_and_singular_ones_are_errors(is_transposed: bool) -> None:
    """The gradient reads the factors, which are those of the matrix as it lies in memory."""

    def solved(a: Any, b: Any) -> Any:
        return torch.linalg.solve(a * 2, b) + torch.linalg.det(a)

    a, b = torch.randn(4, 4) + 3 * torch.eye(4), torch.randn(4, 2)
    a = a.T if is_transposed else a
    one, other = (a.detach().requires_grad_() for _ in range(2))
    chosen = compiled(solved)
    for matrix, function in ((one, solved), (other, chosen)):
        function(matrix, b).square().sum().backward()
    torch.testing.assert_close(other.grad, one.grad, rtol=1e-4, atol=1e-4)
    assert [node.op for node in ho.torch.explain().eager] == ["with_effects"]  # the check
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        chosen(torch.zeros_like(a).requires_grad_(), b)


def test_a_matrix_without_a_cholesky_factor_is_an_error() -> None:
    def factored(x: Any) -> Any:
        return torch.linalg.cholesky(x * 2) + 1

    chosen, x = compiled(factored), torch.eye(3) + 1
    torch.testing.assert_close(chosen(x), factored(x))
    assert [node.op for node in ho.torch.explain().eager] == ["with_effects"]  # the check
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        chosen(-x)


@pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning")
def test_an_argument_of_a_type_that_hlo_lacks_is_read_by_pytorch() -> None:
    def widened(x: Any) -> Any:
        return x.to(torch.complex64) * 2 + 1

    x = torch.tensor([1 + 2j, -3j]).to(torch.complex32)
    torch.testing.assert_close(compiled(widened)(x), widened(x))
    (left,) = ho.torch.explain().eager
    assert (left.op, left.why) == ("aten._to_copy.default", "torch.complex32 has no type in HLO")
