"""Functions by the symbols of a library."""

from __future__ import annotations

import pytest

from fuzz.worker_pool.symbols import readable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("_ZNK3xla5Shape10dimensionsEi", "xla::Shape::dimensions"),
        ("_ZN3xla12_GLOBAL__N_1L3MapIN4mlir6AcosOpEEEvT_", "xla::Map"),
        ("_ZN4mlir12_GLOBAL__N_16ExportENS0_5AddOpENS1_7ContextE", "mlir::Export(AddOp)"),
        ("raise", "raise"),
    ],
)
def test_names_of_functions(name: str, shown: str) -> None:
    assert readable(name) == shown
