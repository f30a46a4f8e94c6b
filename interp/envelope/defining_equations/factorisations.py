"""Judge another library's factors of a matrix by the equation that defines them.

Factors may move far with the last bit of a matrix, and several are right: of eigenvectors the
signs, of multiple eigenvalues whole bases. What every usual algorithm gives is backward stable: the
factors are those of a matrix nearby, which their residual shows. So a peer's factors are legal if

* LU: ``|P A - L U| <= (k + 4) u |L| |U|`` by element, for any order of the sums (Higham, "Accuracy
  and Stability of Numerical Algorithms", 2002, theorem 9.3), and no multiplier is beyond 1, as
  partial pivoting has it (of complex numbers sqrt 2: LAPACK pivots by |re| + |im|);
* Cholesky: ``|A - L L*| <= (k + 8) u |L| |L*|`` by element (theorem 10.3), with a positive
  diagonal;
* triangular systems: ``|B - T X| <= (k + 4) u |T| |X|`` by element (theorem 8.5);
* QR, Schur's form, eigenvalues, singular values: the residual, and the distance of ``Q* Q`` from
  the identity, is at most 30 n u times the norm of the matrix: LAPACK's own tests pass below this
  threshold (LAPACK Users' Guide, 3rd edition, chapter 5; theorem 19.4 for QR). Eigenvalues of
  symmetric matrices ascend, singular values descend and are not negative; without vectors they
  are compared with NumPy's of float64;
* eigenvectors: as these, or so after the balancing by which LAPACK begins (xGEBAL, T^-1 A T): what
  is backward stable is then near that matrix, not near A;
* tridiagonal systems: the residual ``b - A x`` of each right-hand side is at most 60 u times
  ``|A| |x|``, in norms (30 units in the last place is the threshold of LAPACK's test xGTT02).

Beside each bound products and quotients may underflow to zero: as many as there are rows for each
element, each by the smallest normal number. Factors are wrong if a residual is beyond the square of
the dimension times its bound; in between nothing is known. Residuals are computed in extended
precision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hlo.errors import Unsupported
from hlo.module import Instruction
from hlo.types import ArrayShape, leaves
from hlo.values import Array
from interp.envelope.defining_equations import products, spectra, systems
from interp.envelope.defining_equations.residuals import Residual

_TARGET = re.compile(r"lapack_[sdcz](?P<routine>[a-z]+)_ffi")


class Equation(NamedTuple):
    """A check of (operands, outputs, backend_config) of one matrix, and the most rows or columns
    for which it is made."""

    residual: Callable[[Sequence[Array], Sequence[Array], str], Residual | None]
    largest: int = 512


def checked(
    target: str, operands: Sequence[Array], outputs: Sequence[Array], config: str
) -> bool | None:
    """Test whether outputs are matrix factors of the given operands: True if they are legal, False
    if no usual algorithm gives them, None if neither is proven or the call has another form than
    JAX's."""
    equation = _equation(target)
    matrix = max(operands, key=np.ndim)  # others are vectors
    if equation is None or 0 in matrix.shape or max(matrix.shape[-2:]) > equation.largest:
        return None
    if not all(np.isfinite(x).all() for x in operands):
        return None
    found = []
    for index in np.ndindex(*matrix.shape[:-2]):
        try:
            with np.errstate(all="ignore"):  # a NaN is neither legal nor wrong
                one = equation.residual(
                    [x[index] for x in operands], [x[index] for x in outputs], config
                )
        except (IndexError, ValueError, Unsupported):
            return None  # a call of another form than JAX's
        if one is None:
            return None
        found.append(one)
    if all(one.legal <= 1 for one in found):
        return True
    return False if any(one.wrong > 1 for one in found) else None


def is_judged_factorisation(instruction: Instruction) -> bool:
    """Test for a custom call that is a factorisation of matrices passed column by column, with
    results that are, too.

    That is how LAPACK reads and writes memory. Of a matrix that is not declared so (JAX declares
    it), it factors what the compiler's layouts make of it, which the program does not say, and a
    result that is not declared so is transposed. Arrays of lower rank are vectors, as many as there
    are matrices.
    """
    if instruction.opcode != "custom-call":
        return False
    if _equation(str(instruction.attributes["custom_call_target"])) is None:
        return False
    declared: Any = instruction.attributes.get("operand_layout_constraints", ())
    operands = [x for x in declared if isinstance(x, ArrayShape)]
    rank = max((x.rank for x in operands), default=0)
    arrays = (*operands, *leaves(instruction.shape))
    return rank > 1 and all(_is_column_major(x) for x in arrays if x.rank == rank)


def _is_column_major(shape: ArrayShape) -> bool:
    order = () if shape.layout is None else shape.layout.minor_to_major
    return order[:2] == (shape.rank - 2, shape.rank - 1)


def _equation(target: str) -> Equation | None:
    found = _TARGET.fullmatch(target)
    return _EQUATIONS.get(found["routine"]) if found else None


_EQUATIONS: dict[str, Equation] = {
    "gees": Equation(spectra.schur),
    "geev": Equation(spectra.eigenvalues),
    "geqrf": Equation(products.qr),
    "gesdd": Equation(spectra.singular_values),
    "getrf": Equation(products.lu),
    "gtsv": Equation(systems.tridiagonal, largest=1 << 20),
    "heevd": Equation(spectra.symmetric),
    "orgqr": Equation(products.unitary_factor),
    "potrf": Equation(products.cholesky),
    "syevd": Equation(spectra.symmetric),
    "trsm": Equation(systems.triangular),
    "ungqr": Equation(products.unitary_factor),
}
