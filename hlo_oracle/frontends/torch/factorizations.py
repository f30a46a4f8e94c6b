"""Decompose solutions and determinants into factors of matrices.

Gradients read the factors. Those of a determinant are of the matrix or of its transpose: ATen
chooses by the matrix's layout in memory (``A.is_contiguous()`` in
ATen/native/BatchLinearAlgebra.cpp), in some versions those of a solution, too. So these are
decomposed where gradients are taken, while tensors lie as they do in a program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes


def _solves_by_transpose() -> bool:
    """Test whether ATen factors the transpose to solve, too, as PyTorch 2.8 and 2.10 do."""
    with _disable_current_modes():
        a = torch.tensor([[1, 0.5], [0.25, 1]], device="cpu")
        _, lu, _, _ = torch.ops.aten._linalg_solve_ex(a, torch.ones(2, 1, device="cpu"))
        return bool(lu[0, 1] == a[1, 0])


_SOLVES_BY_TRANSPOSE = _solves_by_transpose()


def _factors(a: Any) -> tuple[Any, Any, Any]:
    """Factor a, or its transpose where that needs no copy for LAPACK: the determinant is the
    same."""
    is_transposed = a.is_contiguous() and not a.is_complex()
    factors: tuple[Any, Any, Any] = torch.linalg.lu_factor_ex(a.mT if is_transposed else a)
    return factors


def _solve_ex(
    a: Any, b: Any, *, left: bool = True, check_errors: bool = False
) -> tuple[Any, Any, Any, Any]:
    """Solve a x = b, or x a = b; b is a vector, or a batch of them, if its shape is that of a's
    rows."""
    is_transposed = _SOLVES_BY_TRANSPOSE and a.is_contiguous() and not a.is_complex()
    lu, pivots, info = torch.linalg.lu_factor_ex(a.mT if is_transposed else a)
    is_vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    right = b.unsqueeze(-1) if is_vector else b
    x = torch.linalg.lu_solve(lu, pivots, right, left=left, adjoint=is_transposed)
    return (x.squeeze(-1) if is_vector else x), lu, pivots, info


def _inv_ex(a: Any, *, check_errors: bool = False) -> tuple[Any, Any]:
    unit = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    x, _, _, info = _solve_ex(a, unit.expand_as(a))
    return x, info


def _sign(pivots: Any) -> Any:
    """Compute the determinant of the exchanges of rows: -1 for an odd number of them."""
    unmoved = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device)
    return 1 - 2 * ((unmoved != pivots).sum(-1) % 2)


def _det(a: Any) -> tuple[Any, Any, Any]:
    lu, pivots, _ = _factors(a)
    return _sign(pivots) * lu.diagonal(0, -2, -1).prod(-1), lu, pivots


def _slogdet(a: Any) -> tuple[Any, Any, Any, Any]:
    lu, pivots, _ = _factors(a)
    diagonal = lu.diagonal(0, -2, -1)
    sign = _sign(pivots) * diagonal.sgn().prod(-1)
    return sign, diagonal.abs().log().sum(-1), lu, pivots


TABLE: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._linalg_det.default: _det,
    torch.ops.aten._linalg_slogdet.default: _slogdet,
    torch.ops.aten._linalg_solve_ex.default: _solve_ex,
    torch.ops.aten.linalg_inv_ex.default: _inv_ex,
}
