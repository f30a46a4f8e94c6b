"""PyTorch's eager results are judged by programs: one function of each kind of operation.

Without PyTorch all of it is one skipped line; docs/torch.md says how to run it.
"""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

import torch.nn.functional as F  # noqa: E402 (after the skip)
from torch.func import grad  # noqa: E402 (after the skip)

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo.errors import ArgumentError, Unsupported  # noqa: E402 (after the skip)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def numbers(*sizes: int) -> Any:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def square(count: int) -> Any:
    return numbers(count, count) + 3 * torch.eye(count)


def positive(count: int) -> Any:
    return numbers(count, count) @ numbers(count, count).T + count * torch.eye(count)


A, B, S = square(4), numbers(4, 2), positive(4)
MATRICES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "solve": (torch.linalg.solve, (A, B)),
    "solve batches of vectors": (torch.linalg.solve, (A.expand(3, 4, 4), numbers(3, 4))),
    "solve the transpose": (lambda a, b: torch.linalg.solve(a.mT, b), (A, B)),
    "inverse": (torch.linalg.inv, (A,)),
    "determinants": (lambda a: (torch.linalg.det(a), *torch.linalg.slogdet(a)), (A,)),
    "lu": (torch.linalg.lu, (A,)),
    "cholesky": (torch.linalg.cholesky, (S,)),
    "triangular": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), (A.triu(), B)),
    "exponential": (torch.linalg.matrix_exp, (A / 9,)),
    "gradient of solve": (grad(lambda a, b: torch.linalg.solve(a, b).square().sum()), (A, B)),
    "gradient of the inverse": (grad(lambda a: torch.linalg.inv(a).square().sum()), (A,)),
    "gradient of cholesky": (grad(lambda a: torch.linalg.cholesky(a).sum()), (S,)),
    "gradient of logdet": (grad(lambda a: torch.logdet(a.mT)), (S,)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str) -> None:
    function, given = MATRICES[name]
    verdict = ho.check(function, *given)
    assert verdict and not verdict.undetermined, verdict


def test_factors_that_are_not_unique_are_not_proven_wrong() -> None:
    def factors(x: Any) -> Any:
        square = x.T @ x
        return torch.linalg.qr(x), torch.linalg.eigh(square), torch.linalg.svd(x)

    assert ho.check(factors, numbers(4, 3))


def test_the_order_of_a_minor_that_is_not_positive() -> None:
    assert ho.check(lambda x: torch.linalg.cholesky_ex(x)[1], S - 6 * torch.eye(4))


# Not float32: PyTorch's erf in vectors of it has an absolute error of 1.5e-7 (Abramowitz and Stegun
# 7.1.26), which shows where erf is small.
@pytest.mark.parametrize("element_type", ["float64", "bfloat16", "float16"])
def test_gelu_far_below_zero(element_type: str) -> None:
    """ATen adds 1 to erf, of which only roundings are left there: they are no error of PyTorch's
    by a program that says the same, but were by one of erfc."""
    x = torch.linspace(-6, 0, 400, dtype=getattr(torch, element_type))
    assert ho.check(F.gelu, x)
    assert ho.check(lambda x: F.gelu(F.gelu(x - x.mean())), x)


STATE, TABLE = torch.zeros(3), torch.ones(2, 3)


class Counting(torch.nn.Module):
    """A module whose count is no buffer, and is bound anew by each call."""

    def __init__(self) -> None:
        super().__init__()
        self.count = torch.zeros(())

    def forward(self, x: Any) -> Any:
        self.count += 1
        return x * self.count


def test_tensors_that_are_written_and_no_arguments_are_parameters() -> None:
    def writing(x: Any) -> Any:
        STATE.add_(x)
        TABLE.t()[0] = x[:2]
        return STATE, STATE * 2 + TABLE.sum(0)

    x, model = torch.arange(3.0), Counting()
    for calls in (1, 2):
        verdict = ho.check(writing, x)
        assert verdict and not verdict.undetermined, verdict
        assert torch.equal(STATE, x * calls)  # written once, by the run that is judged
        assert ho.check(model, x)
        assert model.count == calls


def test_views_by_strides() -> None:
    def windows(x: Any) -> Any:
        x = x * 2
        x.as_strided((2, 2), (1, 4)).add_(1)
        return (
            x,
            x.as_strided((3, 3), (1, 2), 1),
            torch.as_strided_scatter(x, x[:2, :2], (2, 2), (3, 1)),
        )

    verdict = ho.check(windows, numbers(4, 4))
    assert verdict and not verdict.undetermined, verdict
    assert ho.check(lambda x: x.as_strided((2, 3), (3, 1)) * 2, numbers(4, 4).T)
    with pytest.raises(Unsupported, match="strides in the memory of a view"):
        ho.check(lambda x: x.t().as_strided((2, 3), (3, 1)), numbers(4, 4))
    with pytest.raises(Unsupported, match="as_strided"):
        ho.check(lambda x: x.as_strided((2,), (1,), 15), numbers(4, 8)[:, ::2])


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_windows_of_signals(name: str, periodic: bool) -> None:
    window = getattr(torch, f"{name}_window")
    assert ho.check(lambda x: [x * window(n, periodic=periodic) for n in (1, 2, 9)], torch.ones(()))


def test_a_spectrogram() -> None:
    def spectrogram(x: Any) -> Any:
        window = torch.hann_window(16)
        return torch.view_as_real(torch.stft(x, 16, 4, window=window, return_complex=True))

    assert ho.check(spectrogram, numbers(64))


def test_a_recurrent_network() -> None:
    assert ho.check(torch.nn.LSTM(3, 4, batch_first=True), numbers(2, 5, 3))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_samples_at_a_grid_and_their_gradients(mode: str, padding: str) -> None:
    def loss(x: Any, grid: Any) -> Any:
        return F.grid_sample(x, grid, mode, padding, align_corners=False).square().sum()

    assert ho.check(grad(loss, argnums=(0, 1)), numbers(1, 2, 5, 6), numbers(1, 3, 4, 2))


@pytest.mark.parametrize("mode", ["nearest-exact", "bilinear", "bicubic"])
def test_gradients_of_interpolations_and_poolings(mode: str) -> None:
    def loss(x: Any) -> Any:
        larger = F.interpolate(x, size=(7, 9), mode=mode)
        padded = F.pad(larger, (1, 2, 0, 1), "replicate")
        return F.adaptive_max_pool2d(padded, (3, 2)).square().sum()

    assert ho.check(grad(loss), numbers(1, 2, 4, 5))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.func.hessian(lambda y: y.sin().sum())(x[0]),
        lambda x: torch.func.jvp(torch.tanh, (x,), (x,)),
        torch.frexp,
        lambda x: F.rrelu(x, training=False),
        lambda x: x[0, 0] * torch.cat([torch.fft.fftfreq(7), torch.fft.rfftfreq(8, 0.5)]),
        lambda x: torch.special.ndtri(x.sigmoid()) + torch.polygamma(1, x.abs() + 1),
        lambda x: torch.special.zeta(x.abs() + 2, x.abs() + 1) + torch.i0(x),
        lambda x: F.bilinear(x, x, TABLE[:, :, None].expand(2, 3, 3)),
        grad(lambda x: F.avg_pool2d(x[None], 2, 1).square().sum()),
        grad(lambda x: F.multi_margin_loss(x, torch.tensor([0, 2, 1, 1]), p=2)),
    ],
)
def test_operations_of_one_line(function: Callable[..., Any]) -> None:
    assert ho.check(function, numbers(4, 3))


def test_classes_that_are_not_listed_have_no_margin() -> None:
    """PyTorch's own decomposition, which torch.compile takes, counts class 0 for each of them."""
    target = torch.tensor([[0, -1, 1], [2, 1, -1], [0, 1, 2], [-1, 0, 0]])

    def loss(x: Any) -> Any:
        return F.multilabel_margin_loss(x, target)

    x = numbers(4, 3)
    for function in (loss, grad(loss)):
        verdict = ho.check(function, x)
        assert verdict and not verdict.undetermined, verdict


def test_gradients_of_what_is_captured() -> None:
    """A module's own parameters require gradients, inside of torch.func.grad as well."""
    network = torch.nn.GRU(3, 4)
    assert ho.check(grad(lambda x: network(x)[0].square().sum()), numbers(5, 2, 3))


@pytest.mark.parametrize("mode", ["linear", "bilinear", "trilinear"])
def test_interpolations_are_those_of_the_kernels(mode: str) -> None:
    """At the border both neighbours are one element, whose weighted sum is rounded."""
    rank = ("linear", "bilinear", "trilinear").index(mode) + 1
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(1, 2, *[6] * rank)
        assert not ho.check(lambda x: F.interpolate(x, scale_factor=1.5, mode=mode), x).outside


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("lengths", [((9, 7), (3, 2)), ([9, 7], [3, 0]), "tensors"])
def test_alignments_and_their_gradients(lengths: Any, reduction: str) -> None:
    """ATen makes a tensor of a list of lengths, which a trace does not see."""
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn((9, 2, 5), generator=draw)
    targets = torch.randint(1, 5, (2, 3), generator=draw)
    given = (torch.tensor([9, 7]), torch.tensor([3, 2])) if lengths == "tensors" else lengths

    def loss_and_gradient(x: Any, targets: Any) -> Any:
        x = x.clone().requires_grad_()
        loss = torch.nn.functional.ctc_loss(
            x.log_softmax(-1), targets, *given, reduction=reduction, zero_infinity=True
        )
        return loss, *torch.autograd.grad(loss.sum(), x)

    assert ho.check(loss_and_gradient, scores, targets)


def test_memory_that_nothing_has_written_is_no_part_of_a_program() -> None:
    x = torch.ones(3)
    for reading in (
        lambda x: torch.empty(3).clamp(min=1) * x,
        lambda x: torch.empty_like(x),
        lambda x: x + torch.empty(2, 3)[0],
    ):
        with pytest.raises(Unsupported, match="reads memory that nothing has written"):
            ho.check(reading, x)


def written(x: Any) -> Any:
    made = torch.empty(2, 3)
    made[0], made[1] = x, 2
    return made, torch.empty(3).copy_(x), x + torch.zeros_like(torch.empty(3)), torch.empty(0)


def test_memory_that_is_written_may_be_read() -> None:
    assert ho.check(written, torch.ones(3))


def test_an_exported_program_is_judged_as_its_module_and_is_no_hlo() -> None:
    x = torch.randn(2, 4)
    exported = torch.export.export(
        torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.GELU()), (x,)
    )
    assert ho.check(exported, x)
    with pytest.raises(ArgumentError, match=r"ExportedProgram of PyTorch.*ho\.check"):
        ho.load(exported)
