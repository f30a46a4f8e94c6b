"""Multiply matrices on the first GPU by cuBLASLt and by our kernels, of every type and order.

    python -m selftest.gpu.library_products [--only TYPE] [--cubins DIR] [--emulated]

Both results must be as near to the exact one as sums in any order are, those of integers equal. A
line for each product has the milliseconds of either. Exit status 1 if a result is wrong or the
library does not take a product, 69 if there is no GPU, no compiler for it or no library. With
``--emulated``, matrices are small, and the library is that of HLO_CUBLASLT, if it is given.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import hlo
from backend_c.ir.settings import Numerics, launched
from backend_c.lower.plan import Plan
from backend_c.native.cublas_lt import find_cublas_lt
from backend_c.native.cuda_executable import CudaExecutable
from backend_c.pipeline import lowered, on_device
from fuzz.compilers.packed_cubins import device_and_compiler
from hlo.errors import DeviceError, ToolchainError
from hlo.module import Module
from hlo.values import Array
from hlo_oracle.arguments import from_seed
from selftest.gpu.unit import NO_GPU, where

TYPES = (("bf16", "bf16"), ("bf16", "f32"), ("f16", "f16"), ("f16", "f32"), ("f32", "f32"),
         ("f64", "f64"))  # fmt: skip
ORDERS = (("mk", "kn"), ("mk", "nk"), ("km", "kn"), ("km", "nk"), ("bmk", "bkn"), ("mbk", "nbk"),
          ("bkm", "kbn"))  # fmt: skip
_OF_BYTES = (("mk", "nk"), ("bmk", "nbk"))  # which the library takes
_SIDES = {False: (256, 384, 512), True: (8, 16, 40)}  # m, n, k; emulated
_LEAST = {False: 128, True: 8}  # a side of a product that is a library's


@dataclass(frozen=True, slots=True)
class Product:
    """Describe a product of matrices; ``lhs`` and ``rhs`` are their dimensions in order, of b, m,
    n, k.
    """

    factor: str
    result: str
    lhs: str = "mk"
    rhs: str = "kn"
    m: int = 8
    n: int = 16
    k: int = 40
    b: int = 3

    @property
    def batch(self) -> str:
        """Return the batch dimension, empty if there is none."""
        return "b" * ("b" in self.lhs)

    def text(self) -> str:
        """Return the program, whose instruction ``d`` is the product."""
        x, y = (f"{self.factor}[{self._dims(order)}]" for order in (self.lhs, self.rhs))
        numbers = [
            f"{side}_{kind}_dims={{{order.index(one)}}}"
            for side, order in (("lhs", self.lhs), ("rhs", self.rhs))
            for kind, one in (("contracting", "k"), *(("batch", b) for b in self.batch))
        ]
        return f"""HloModule product
ENTRY e {{ x = {x} parameter(0)
          y = {y} parameter(1)
          ROOT d = {self.result}[{self._dims(self.batch + "mn")}] dot(x, y), {", ".join(numbers)} }}
"""

    def is_right(self, found: Array, x: Array, y: Array) -> bool:
        """Return whether a result is no farther from the exact one than sums in any order are.

        Higham, "Accuracy and stability of numerical algorithms", 3.1: k roundings of the sum of
        magnitudes. Sums of the reference in f64 have as many of their own.
        """
        wide = [one.astype(np.int64 if self.factor == "s8" else np.float64) for one in (x, y)]
        exact, most = self._sums(*wide), self._sums(*map(np.abs, wide))
        if self.factor == "s8":
            return np.array_equal(found, exact)
        roundings = 2.0 * (self.k + 1) * (2.0**-53 if self.result == "f64" else 2.0**-24)
        rounding = {"bf16": 2.0**-8, "f16": 2.0**-11}.get(self.result, 0.0)
        apart = np.abs(found.astype(np.float64) - exact)
        return found.shape == exact.shape and bool(np.all(apart <= most * (roundings + rounding)))

    def _sums(self, x: Array, y: Array) -> Array:
        found: Array = np.einsum(f"{self.lhs},{self.rhs}->{self.batch}mn", x, y, optimize=True)
        return found

    def _dims(self, order: str) -> str:
        return ",".join(str(getattr(self, one)) for one in order)


def all_products(m: int = 8, n: int = 16, k: int = 40) -> list[Product]:
    """Return a product for each type and order that the library takes."""
    sides = m, n, k
    floats = [Product(*types, *orders, *sides) for types in TYPES for orders in ORDERS]
    return [*floats, *(Product("s8", "s32", *orders, *sides) for orders in _OF_BYTES)]


def planned(text: str, side: int) -> tuple[Module, Plan]:
    """Lower a program with fast numerics; products without shorter sides are a library's."""
    module = hlo.parse(text)
    return module, lowered(module, replace(launched(Numerics.FAST), library_side=side))


def _rows(
    products: Sequence[Product], by_library: Sequence[CudaExecutable],
    by_kernels: Sequence[CudaExecutable],
) -> Iterator[tuple[str, bool]]:  # fmt: skip
    """Run products by either; yield a line about each, and whether it is right."""
    for product, *both in zip(products, by_library, by_kernels, strict=True):
        x, y = (np.asarray(one) for one in from_seed(hlo.parse(product.text()), 0))
        right, times = True, []
        for executable in both:
            right &= product.is_right(np.asarray(executable(x, y)), x, y)
            times.append(executable.time(x, y, repeat=3))
        names = {one.kernel for one in both[0].bind(x, y).profile()}
        used = names == {"cuBLASLt"}
        told = "" if right and used else " WRONG" if used else " not taken"
        types = f"{product.factor} {product.lhs},{product.rhs} {product.result}"
        yield f"{types:20} {times[0]:9.4f} ms {times[1]:9.4f} ms{told}", right and used


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.gpu.library_products",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="TYPE", help="of the factors")
    parser.add_argument("--cubins", type=Path, metavar="DIR")
    parser.add_argument("--emulated", action="store_true", help="on the emulated driver")
    given = parser.parse_args(words)
    try:
        device, compiler = device_and_compiler(given.cubins, given.emulated)
        # The library of a GPU cannot read emulated memory.
        is_there = not given.emulated or os.environ.get("HLO_CUBLASLT")
        library = find_cublas_lt(device, os.environ) if is_there else None
    except (DeviceError, ToolchainError) as error:
        print(error, file=sys.stderr)
        return NO_GPU
    if library is None:
        print("there is no cuBLASLt: pip install nvidia-cublas", file=sys.stderr)
        return NO_GPU
    side = _LEAST[given.emulated]
    products = [product for product in all_products(*_SIDES[given.emulated])
                if given.only in (None, product.factor)]  # fmt: skip
    plans = [planned(product.text(), side) for product in products]
    by_library = on_device(plans, device, compiler, given.cubins, library)
    by_kernels = on_device(plans, device, compiler, given.cubins)
    print(f"{where(device)}: cuBLASLt, our kernels")
    wrong = 0
    for line, is_right in _rows(products, by_library, by_kernels):
        print(line, flush=True)
        wrong += not is_right
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
