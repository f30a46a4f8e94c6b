"""Programs of symbolic shapes have static ones once the arrays that they take are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo_oracle as ho
from hlo.errors import ArgumentError, Error
from hlo_oracle.command.main import main
from hlo_oracle.frontends import symbolic_shapes
from hlo_oracle.frontends.jax_internals import with_x64

jax = pytest.importorskip("jax")
X = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 10], [0, 1, 0]], np.float32)


def function(x: Any) -> Any:
    """Have sizes in shapes (of softmax, arange) and in numbers."""
    return jax.nn.softmax(x, 0) * x.shape[0], jax.numpy.arange(x.shape[0]) * 2


@pytest.fixture(scope="module", autouse=True)
def numbers_of_32_bits() -> Iterator[None]:
    """JAX's default, which other tests of the same process may have changed."""
    with with_x64(False):
        yield


@pytest.fixture(scope="module")
def exported() -> Any:
    (rows,) = jax.export.symbolic_shape("b", constraints=["b >= 2"])
    shape = jax.ShapeDtypeStruct((rows, 3), np.float32)
    return jax.export.export(jax.jit(function))(shape)


def forms(exported: Any, directory: Path) -> list[Any]:
    """Return the program in all its forms, as objects and as files."""
    text, bytecode = str(exported.mlir_module()), bytes(exported.mlir_module_serialized)
    files = {"f.mlir": text.encode(), "f.mlirbc": bytecode, "f.export": exported.serialize()}
    for name, data in files.items():
        (directory / name).write_bytes(data)
    lowered = jax.jit(lambda x: exported.call(x)).lower(X)
    stages = [lowered, jax.jit(exported.call).trace(X)]
    return [exported, text, *files.values(), *(directory / name for name in files), *stages]


def as_wanted(found: Any) -> bool:
    softmax, numbers = found
    return np.allclose(softmax, function(X)[0]) and numbers.tolist() == [0, 2, 4, 6]


def test_every_form_runs_with_arrays(exported: Any, tmp_path: Path) -> None:
    for program in forms(exported, tmp_path):
        assert as_wanted(ho.run(program, X))


@pytest.mark.parametrize("entry", [ho.run, lambda f, x: ho.compile(f, x)(x)])
def test_functions_that_call_what_was_exported(entry: Callable[..., Any], exported: Any) -> None:
    for program in (exported.call, jax.jit(lambda x: exported.call(x)), exported):
        assert as_wanted(entry(program, X))
    assert as_wanted(ho.jit(exported.call)(X))


def test_checks(exported: Any) -> None:
    assert ho.check(exported.call, X)
    verdict = ho.check(exported, {"arr_0": X})
    assert verdict and verdict.equal + verdict.within == 16


def test_the_command_takes_sizes_of_its_arrays(
    exported: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, arrays = tmp_path / "f.mlir", tmp_path / "x.npz"
    program.write_text(str(exported.mlir_module()))
    np.savez(arrays, X)
    assert main(["run", str(program), "--args", str(arrays)]) == 0
    assert "int32[4]" in capsys.readouterr().out
    assert main(["check", str(program), "--args", str(arrays)]) == 0
    assert "2 outputs equal" in capsys.readouterr().out
    assert main(["run", str(program)]) == 2
    assert (
        "its shapes are symbolic (Arg_0: tensor<?x3xf32>): give the arrays"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ((), r"its shapes are symbolic \(Arg_0: tensor<\?x3xf32>\): give the arrays that it takes"),
        ((X[0],), r"is tensor<\?x3xf32>: an array of shape \(3,\) is given"),
        ((X, X), r"it takes 1 array \(Arg_0: tensor<\?x3xf32>\), not 2"),
        ((X[:, :2],), r"expected f32\[4,3\]"),
        (({"y": X},), "Arg_0 is missing; there are y"),
    ],
)
def test_arrays_that_do_not_fit(arrays: tuple[Any, ...], said: str, exported: Any) -> None:
    with pytest.raises(ArgumentError, match=said):
        ho.run(exported, *arrays)


def test_dimensions_that_are_parameters() -> None:
    """JAX lowers symbolic shapes with dimensions as numbers, and exports them without."""
    shape = jax.ShapeDtypeStruct(jax.export.symbolic_shape("rows, 3"), np.float32)
    lowered = jax.jit(function).lower(shape)
    for use in (lambda: ho.run(lowered, X), lambda: ho.compile(function, shape)):
        with pytest.raises(ArgumentError, match=r"dimensions \(rows\) as numbers.*: export it"):
            use()


def test_platforms_that_are_parameters_are_named() -> None:
    shape = jax.ShapeDtypeStruct(jax.export.symbolic_shape("rows, 3"), np.float32)
    several = jax.export.export(jax.jit(function), platforms=("cpu", "cuda"))(shape)
    with pytest.raises(ArgumentError, match="takes 2 arrays ._platform_index: tensor<i32>, Arg_1"):
        ho.run(several, X)
    assert as_wanted(ho.run(several, np.int32(0), X))


def test_sizes_that_the_program_refuses(exported: Any) -> None:
    with pytest.raises(Error, match="cannot be refined: Input shapes do not match the symbolic"):
        ho.run(exported, X[:1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "module { func.func @main(%a: tensor<?xf32>) { return %b } }",
            "as StableHLO: .*expected ':'",
        ),
        ("module { func.func @f(%a: tensor<?xf32>) { return } }", "without a function main"),
    ],
)
def test_what_is_no_program(text: str, said: str) -> None:
    with pytest.raises(Error, match=said):
        ho.run(text, X)


def test_static_programs_take_no_arguments(tmp_path: Path) -> None:
    static = jax.export.export(jax.jit(lambda x: x + 1))(X)
    with pytest.raises(ArgumentError, match="a program has its own shapes"):
        ho.load(static, X)
    assert ho.run(static, X).tolist() == (X + 1).tolist()


def test_what_is_symbolic() -> None:
    assert symbolic_shapes.may_be_symbolic(b"func.func @main(%a: tensor<2x?x3xf32>)")
    bounded = b"func.func @main(%a: tensor<?x3xf32, #stablehlo.bounds<4, ?>>)"
    assert not symbolic_shapes.may_be_symbolic(bounded)
    assert not symbolic_shapes.may_be_symbolic(b"func.func @main(%a: tensor<2x3xf32>)")
