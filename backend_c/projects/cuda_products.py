"""Render products of matrices in ``launch.cu``: by cuBLASLt where it is found, else by kernels."""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.cuda import cublas_lt
from backend_c.cuda.cublas_lt import Layout, matmul
from backend_c.cuda.host_plan import LIBRARY_BYTES, HostPlan, MultiplyMatrices, products
from backend_c.native.toolchain import RUNTIME
from backend_c.projects.cuda_names import ProjectNames
from backend_c.projects.origin_comments import safe_name
from hlo.types import F64, S32

_INDENT = "    "
_HEADERS = ("cublas_lt_calls.h", "cublas_lt_products.h")


def products_text(host: HostPlan) -> str:
    """Render what products need: numbers of cuBLASLt, its calls, a table of the products."""
    rows = [_row(step) for step in products(host)]
    if not rows:
        return ""
    numbers = {
        **cublas_lt.MATMUL_DESC,
        **cublas_lt.MATRIX_LAYOUT,
        "MAX_WORKSPACE_BYTES": cublas_lt.MATMUL_PREF["MAX_WORKSPACE_BYTES"],
        "COMPUTE_64F": cublas_lt.COMPUTE_TYPES[F64],
        "COMPUTE_32I": cublas_lt.COMPUTE_TYPES[S32],
        "PRODUCT_ALIGNMENT": cublas_lt.ALIGNMENT,
        "PRODUCT_BYTES": LIBRARY_BYTES,
    }
    lines = [f"{_INDENT}MODULE_{name} = {number}," for name, number in numbers.items()]
    wishes = ", ".join(f"{{{attribute}, {value}}}" for attribute, value in cublas_lt.WISHES)
    calls, code = ((RUNTIME / "cuda" / name).read_text("utf-8") for name in _HEADERS)
    table = "".join(f"{_INDENT}{row},\n" for row in rows)
    return (
        f"{calls}\n"
        f"enum {{\n{_joined(lines)}}};\n"
        f"static const int MODULE_WISHES[][2] = {{{wishes}}};\n\n"
        f"{code}\n"
        f"static const matrix_product MODULE_PRODUCTS[] = {{\n{table}}};\n\n"
    )


def product_lines(
    step: MultiplyMatrices, places: Sequence[str], otherwise: Sequence[str], names: ProjectNames
) -> list[str]:
    """Render a product; ``places`` are lhs, rhs, result and workspace, ``otherwise`` the launches
    of kernels.
    """
    row = names.begun(f"MODULE_PRODUCTS[{step.number}]")
    lhs, rhs, result, workspace = places
    name, number = safe_name(step.origin.instruction), step.number
    return [
        "{",
        f"{_INDENT}bool is_done = false;",
        f'{_INDENT}REQUIRE(multiply({number}, "%{name}", {row}, {rhs}, {lhs},',
        f"{_INDENT}                 {result}, {workspace}, stream, &is_done));",
        f"{_INDENT}if (!is_done) {{",
        *(f"{_INDENT}{_INDENT}{line}" for line in otherwise),
        f"{_INDENT}}}",
        "}",
    ]


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _row(step: MultiplyMatrices) -> str:
    """Render the numbers of a product."""
    one = matmul(step.product)
    numbers = one.compute_type, one.scale_type, one.batch, *one.transposed
    matrices = ", ".join(map(_layout, (one.first, one.second, one.result)))
    return f"{{{', '.join(map(str, numbers))}, {matrices}}}"


def _layout(layout: Layout) -> str:
    return f"{{{', '.join(map(str, layout))}}}"
