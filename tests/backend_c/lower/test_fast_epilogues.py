"""Contractions in fast numerics that compute what follows them before they store.

Operands are small integers, whose sums are exact in any order: the bits are the interpreter's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Loop, Statement, Store, every
from backend_c.ir.loop_rewriting import with_loops
from backend_c.ir.settings import Numerics, Settings
from backend_c.native.cuda_emulation import Schedule
from backend_c.pipeline import emulated, lowered
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.values import Array

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

Types = tuple[str, str, str]
# The shapes of both operands and of the result, without types, and the contraction's attributes.
CONTRACTIONS = {
    "matrices": ("[70,90]", "[90,110]", "[70,110]", "1 0"),
    "wide matrices": ("[19,64]", "[64,514]", "[19,514]", "1 0"),
    "a transposed right factor": ("[33,40]", "[65,40]", "[33,65]", "1 1"),
    "a transposed left factor": ("[40,33]", "[40,65]", "[33,65]", "0 0"),
    "a row": ("[1,300]", "[300,70]", "[1,70]", "1 0"),
    "a vector": ("[90,300]", "[300]", "[90]", "1 0"),
    "a short vector": ("[90,10]", "[10]", "[90]", "1 0"),
    "a vector of few steps": ("[130,5]", "[5]", "[130]", "1 0"),
    "a vector times columns": ("[9]", "[9,70]", "[70]", "0 0"),
    "few columns": ("[67,10]", "[10,3]", "[67,3]", "1 0"),
    "some columns": ("[67,21]", "[21,7]", "[67,7]", "1 0"),
    "some transposed columns": ("[67,9]", "[10,9]", "[67,10]", "1 1"),
    "rows of a batch": ("[2,3,33,5]", "[2,3,5,6]", "[2,3,33,6]", "3 2 batches"),
    "few transposed columns": ("[67,10]", "[4,10]", "[67,4]", "1 1"),
    "few columns of few steps": ("[67,3]", "[2,3]", "[67,2]", "1 1"),
    "few transposed rows": ("[10,67]", "[10,2]", "[67,2]", "0 0"),
    "pairs of vectors": ("[75,10]", "[75,10]", "[75]", "1 1 batch"),
    "a batch": ("[5,8,8]", "[5,8,8]", "[5,8,8]", "2 1 batch"),
    "a batch of rows": ("[5,1,70]", "[5,70,40]", "[5,1,40]", "2 1 batch"),
    "nothing": ("[6,0]", "[0,7]", "[6,7]", "1 0"),
    "no elements": ("[0,6]", "[6,7]", "[0,7]", "1 0"),
    "one by one": ("[1,9,9,33]", "[1,1,33,40]", "[1,9,9,40]", "size=1x1"),
    "windows": ("[2,14,14,16]", "[3,3,16,24]", "[2,14,14,24]", "size=3x3 pad=1_1x1_1"),
    "strides": ("[1,15,15,7]", "[3,3,7,9]", "[1,7,7,9]", "size=3x3 stride=2x2"),
    "depthwise": ("[1,12,12,16]", "[3,3,1,16]", "[1,12,12,16]", "size=3x3 pad=1_1x1_1 groups=16"),
    "groups": ("[1,10,10,12]", "[3,3,4,9]", "[1,8,8,9]", "size=3x3 groups=3"),
}
# Of each: the operands' type, the result's, and what is computed last in.
TYPES = (
    ("f32", "f32", "f32"),
    ("f64", "f64", "f64"),
    ("bf16", "bf16", "bf16"),
    ("bf16", "f32", "bf16"),
    ("f16", "f32", "f16"),
    ("s8", "s32", "s8"),
    ("s32", "s32", "s16"),
)


def contraction(name: str) -> tuple[str, str, str, str]:
    """Return the shapes without types, and the instruction with its operands x and y."""
    left, right, result, how = CONTRACTIONS[name]
    if how.startswith("size"):
        window, _, groups = how.partition(" groups=")
        text = f"convolution(x, y), window={{{window}}}, dim_labels=b01f_01io->b01f"
        return left, right, result, text + (f", feature_group_count={groups}" if groups else "")
    one, other, *batch = how.split()
    dims = f"lhs_contracting_dims={{{one}}}, rhs_contracting_dims={{{other}}}"
    for name in batch:
        batches = {"batch": "0", "batches": "0,1"}[name]
        dims += f", lhs_batch_dims={{{batches}}}, rhs_batch_dims={{{batches}}}"
    return left, right, result, f"dot(x, y), {dims}"


def layer(name: str, types: Types) -> Module:
    """Return a contraction with a bias, a factor, a residual that is another argument, a maximum,
    and a conversion."""
    (given, summed, stored), (left, right, result, text) = types, contraction(name)
    last = len(result.split(",")) - 1
    features = result.strip("[]").split(",")[-1]
    made = hlo.parse(f"""
        HloModule m
        ENTRY e {{
          x = {given}{left} parameter(0)
          y = {given}{right} parameter(1)
          b = {summed}[{features}] parameter(2)
          residual = {summed}{result} parameter(3)
          z = {summed}{result} {text}
          biases = {summed}{result} broadcast(b), dimensions={{{last}}}
          biased = {summed}{result} add(z, biases)
          two = {summed}[] constant(2)
          twos = {summed}{result} broadcast(two), dimensions={{}}
          twice = {summed}{result} multiply(biased, twos)
          beside = {summed}{result} add(twice, residual)
          zero = {summed}[] constant(0)
          zeros = {summed}{result} broadcast(zero), dimensions={{}}
          positive = {summed}{result} maximum(beside, zeros)
          ROOT r = {stored}{result} convert(positive)
        }}""")
    hlo.verify(made)
    return made


def integers(module: Module) -> Iterator[Array]:
    draw = np.random.default_rng(0)
    for p in module.entry.parameters:
        yield draw.integers(-1, 2, p.shape.dims).astype(p.shape.element_type.numpy)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_what_follows_a_contraction_is_stored_with_it(types: Types) -> None:
    for name in CONTRACTIONS:
        module = layer(name, types)
        assert len(lowered(module, Settings(Numerics.FAST)).kernels) <= 1
        arrays = list(integers(module))
        wanted = interp.evaluate(module, *arrays)
        for threads in (1, 2):
            found = backend_c.compile(module, threads=threads)(*arrays)
            assert not differences(wanted, found), name


IN_LANES = (
    *("a vector", "a short vector", "a vector of few steps", "a vector times columns"),
    *("few columns", "some columns", "some transposed columns", "rows of a batch"),
    *("few transposed columns", "few columns of few steps", "few transposed rows"),
    "pairs of vectors",
)
_MANY = 16  # lanes: whole vectors


@pytest.mark.parametrize("name", IN_LANES)
@pytest.mark.parametrize("types", (("f32",) * 3, ("f64",) * 3, ("bf16",) * 3), ids="-".join)
def test_results_of_few_columns_are_computed_in_lanes(name: str, types: Types) -> None:
    (kernel,) = lowered(layer(name, types), Settings(Numerics.FAST)).kernels
    (result,) = kernel.outputs
    serial = [s for s in every(_without_lanes(kernel.body)) if isinstance(s, Store)]
    assert result not in [store.array for store in serial]


def _without_lanes(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements without their loops in many lanes."""

    def outside(loop: Loop) -> Sequence[Statement]:
        if "lanes" in loop.kind and ix.bounds(loop.extent)[1] >= _MANY:
            return ()
        return (loop._replace(body=_without_lanes(loop.body)),)

    return with_loops(body, outside)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("tensor_cores", [False, True])
def test_blocks_of_threads_compute_it_too(tensor_cores: bool) -> None:
    types = ("bf16", "f32", "bf16") if tensor_cores else ("f32", "f32", "f32")
    modules = [layer(name, types) for name in CONTRACTIONS]
    fast = Settings(Numerics.FAST, grain=1, has_blocks=True, has_tensor_cores=tensor_cores)
    for module, program in zip(modules, emulated(modules, fast), strict=True):
        arrays = list(integers(module))
        wanted = interp.evaluate(module, *arrays)
        for size in (32, 256):
            assert not differences(wanted, program(*arrays, schedule=Schedule(size)))


def test_a_library_computes_products_alone() -> None:
    module = layer("matrices", ("f32", "f32", "f32"))
    assert len(backend_c.listing(module, "cuda").texts) == 1
    assert len(backend_c.listing(module, "cuda", cublaslt=True).texts) == 2
