"""Training steps of PyTorch: optimizers, operations of lists of tensors, running statistics."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: hlo-oracle[torch]")

import hlo_oracle as ho  # noqa: E402 (after the skip)
from hlo.errors import Unsupported  # noqa: E402 (after the skip)
from hlo_oracle.frontends.torch import lists  # noqa: E402 (after the skip)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def numbers(*sizes: int) -> Any:
    return torch.rand(sizes, generator=torch.Generator().manual_seed(sum(sizes))) * 0.9 + 0.05


@pytest.mark.parametrize(
    ("optimizer", "foreach"), [("AdamW", False), ("AdamW", True), ("ASGD", False)]
)
def test_steps_of_an_optimizer(optimizer: str, foreach: bool) -> None:
    model = torch.nn.Linear(3, 2)
    parameters = list(model.parameters())
    stepping = getattr(torch.optim, optimizer)(parameters, lr=0.01, foreach=foreach)

    def train(x: Any) -> Any:
        stepping.zero_grad()
        model(x).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.1)
        stepping.step()
        return parameters

    for _ in range(2):  # the first step makes the optimizer's state
        verdict = ho.check(train, numbers(5, 3))
        assert verdict, verdict
        assert not verdict.undetermined, verdict
    state = [x for own in stepping.state.values() for x in own.values()]
    assert all(type(x) in (torch.Tensor, type(None)) for x in state)  # none of a trace


def _arguments(schema: Any) -> tuple[list[Any], dict[str, Any]]:
    drawn = {
        "List[Tensor]": lambda: [numbers(3, 3), numbers(2, 2)],
        "List[number]": lambda: [0.5, 0.25],
        "number": lambda: 0.5,
        "Tensor": lambda: numbers(1)[0],
    }
    known = [x for x in schema.arguments if str(x.type) in drawn]
    values = {x.name: drawn[str(x.type)]() for x in known}
    positional = [values[x.name] for x in known if not x.kwarg_only]
    return positional, {x.name: values[x.name] for x in known if x.kwarg_only}


@pytest.mark.parametrize("overload", lists.TABLE, ids=str)
def test_operations_of_lists_are_those_of_their_tensors(overload: Any) -> None:
    arguments, keywords = _arguments(overload._schema)
    found = lists.TABLE[overload](*arguments, **keywords)
    if found is NotImplemented:
        assert str(overload).startswith("aten._foreach_addc")
        return
    expected = overload(*arguments, **keywords)
    assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


def test_the_norm_of_gradients() -> None:
    x, y = numbers(3), numbers(2, 2)
    verdict = ho.check(lambda x, y: torch.nn.utils.get_total_norm([x, y]), x, y)
    assert verdict and not verdict.undetermined, verdict


def test_running_statistics_of_a_module_around_the_function() -> None:
    norm = torch.nn.BatchNorm1d(3)
    verdict = ho.check(lambda x: norm(x), numbers(5, 3))
    assert verdict and not verdict.undetermined, verdict
    assert norm.num_batches_tracked == 1


def test_running_statistics_that_are_read_later() -> None:
    def normalised(x: Any, mean: Any, variance: Any) -> Any:
        y = torch.nn.functional.batch_norm(x, mean, variance, training=True)
        return y, mean * 2, variance

    verdict = ho.check(normalised, numbers(5, 3), torch.zeros(3), torch.ones(3))
    assert verdict and verdict.equal + verdict.within == 21, verdict


def test_arguments_that_are_written_and_returned() -> None:
    """A decomposition returns the copy into its argument as the result."""

    def normalised(x: Any, mean: Any, var: Any) -> Any:
        return torch.nn.functional.batch_norm(x, mean, var, training=True), mean, var.sqrt()

    mean = torch.zeros(3)
    verdict = ho.check(normalised, numbers(5, 3), mean, torch.ones(3))
    assert verdict and not verdict.undetermined, verdict
    assert torch.allclose(mean, 0.1 * numbers(5, 3).mean(0))


def test_a_module_that_is_made_and_trained_inside_is_refused() -> None:
    """Each trace makes another one, whose parameters are no parameters of the program."""

    def trained(x: Any) -> Any:
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(x).sum().backward()
        optimizer.step()
        return model.weight.detach().clone()

    with pytest.raises(Unsupported, match="make that before"):
        ho.check(trained, numbers(4, 3))


def test_a_number_is_that_of_its_tensor_before_later_writes() -> None:
    def stepped(x: Any) -> Any:
        x = x.clone()
        first = x[0].item()
        x += 1
        return x * first

    assert ho.check(stepped, numbers(3))

    def added(x: Any) -> Any:  # C++ reads the number
        x = x.clone()
        return x.add_(torch.ones(3), alpha=x[0])

    with pytest.raises(Unsupported, match="written later"):
        ho.check(added, numbers(3))


def test_distributions_that_check_their_arguments() -> None:
    def density(x: Any) -> Any:
        return torch.distributions.Normal(x, 1.0, validate_args=True).log_prob(x * 2)

    assert ho.check(density, numbers(4))
