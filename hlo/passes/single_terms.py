"""Replace reductions of one element each by their operation: reduce(x, init) is init ∘ x.

Gradients of broadcasts along a dimension of extent 1 are such (``jax.nn.softmax``, norms with
``keepdims``): as a reduction they would end the row that they lie in
(:mod:`hlo.passes.row_loops.rows`).
"""

from __future__ import annotations

import math
from functools import partial

from hlo.module import Instruction, Module
from hlo.passes.rewriting import Rebuilt, array, each_of, integers
from hlo.types import ArrayShape
from hlo.walk import monoid


def single_terms(module: Module) -> Module:
    """Replace each reduction of one array whose reduced dimensions have extent 1."""
    return each_of(module, ("reduce",), partial(_operation, module))


def _operation(module: Module, rebuilt: Rebuilt, reduce: Instruction) -> Instruction | None:
    """Return the operation that a reduction is, after its operands' new shapes; None if it takes
    more elements, several arrays, bounded dimensions, or a computation that is no operation."""
    if len(reduce.operands) != 2 or not isinstance(reduce.shape, ArrayShape):
        return None
    operand, init = (array(rebuilt.definitions[name].shape) for name in reduce.operands)
    combined = module.computation(str(reduce.attributes["to_apply"]))
    opcode, result = monoid(combined), array(combined.root_instruction.shape)
    terms = math.prod(operand.dims[d] for d in integers(reduce, "dimensions"))
    if opcode is None or terms != 1 or operand.is_dynamic:
        return None
    if not operand.element_type is init.element_type is result.element_type:
        return None
    shape = ArrayShape(operand.element_type, reduce.shape.dims)
    fresh = rebuilt.names.fresh
    one, other = (fresh(f"{reduce.name}.{part}") for part in ("init", "term"))
    rebuilt.add(Instruction(one, shape, "broadcast", reduce.operands[1:], {"dimensions": ()}))
    rebuilt.add(Instruction(other, shape, "reshape", reduce.operands[:1], {}))
    return reduce._replace(opcode=opcode, operands=(one, other), attributes={})
