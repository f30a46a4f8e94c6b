"""Fusion: what is computed together, what is stored, and that a decision cannot explode."""

import re
from collections import Counter

import pytest

import hlo
from hlo.module import Module
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.passes import run
from hlo.passes.cost import COST
from hlo.passes.fusion import fusion
from hlo.passes.fusion_decisions import MOST_OPERATIONS
from hlo.passes.fusion_targets import TARGETS
from hlo.passes.rewriting import array
from hlo.walk import column, function_name

SUM = """sum { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
"""


def fused(text: str) -> Module:
    module = run(hlo.parse(f"HloModule m\n{SUM}{text}"), "backend_c")
    hlo.verify(module)
    assert hlo.parse(hlo.format(module)) == module
    return module


def opcodes(module: Module, name: str = "") -> Counter[str]:
    computation = module.computation(name) if name else module.entry
    return Counter(i.opcode for i in computation.instructions)


def test_a_sum_of_products_is_one_fusion_around_its_reduce() -> None:
    module = fused("""ENTRY main {
  x = f32[8,9] parameter(0)
  y = f32[8,9] parameter(1)
  z = f32[8,9] parameter(2)
  product = f32[8,9] multiply(y, z)
  both = f32[8,9] add(x, product)
  zero = f32[] constant(0)
  ROOT total = f32[] reduce(both, zero), dimensions={0,1}, to_apply=sum }
""")
    assert opcodes(module) == {"parameter": 3, "fusion": 1}
    assert opcodes(module, "fused_reduce") == {
        "parameter": 3, "multiply": 1, "add": 1, "constant": 1, "reduce": 1,
    }  # fmt: skip
    assert module.computation("fused_reduce").root_instruction.opcode == "reduce"


_SHARES = """ENTRY main {
  x = f32[8,9] parameter(0)
  e = f32[8,9] exponential(x)
  zero = f32[] constant(0)
  total = f32[KEPT] reduce(e, zero), dimensions={REDUCED}, to_apply=sum
  wide = f32[8,9] broadcast(total), dimensions={DIMENSION}
  ROOT share = f32[8,9] divide(e, wide) }
"""


def test_an_expensive_value_of_two_fusions_is_stored() -> None:
    columns = {"KEPT": "9", "REDUCED": "0", "DIMENSION": "1"}
    module = fused(re.sub("[A-Z]{4,}", lambda m: columns.get(m[0], m[0]), _SHARES))
    assert opcodes(module) == {"parameter": 1, "fusion": 3}


_ROUNDS = """ENTRY main {
  a0 = u32[SIZE] parameter(0)
  b0 = u32[SIZE] parameter(1)
  n = u32[] parameter(2)
  s = u32[SIZE] broadcast(n), dimensions={}
ROUNDS
  ROOT r = (u32[SIZE], u32[SIZE]) tuple(aLAST, bLAST) }
"""


def rounds(count: int, size: int) -> Module:
    """Return rounds in which two arrays are mixed, as generators of random numbers do."""
    lines = "\n".join(
        f"  a{k + 1} = u32[SIZE] add(a{k}, b{k})\n"
        f"  t{k} = u32[SIZE] shift-left(b{k}, s)\n"
        f"  b{k + 1} = u32[SIZE] xor(a{k + 1}, t{k})"
        for k in range(count)
    )
    text = _ROUNDS.replace("ROUNDS", lines).replace("LAST", str(count))
    return fused(text.replace("SIZE", str(size)))


def test_cheap_rounds_are_repeated_where_arrays_leave_the_caches() -> None:
    """A kernel for each of the two results, however many readers the values between them have."""
    assert opcodes(rounds(4, 1 << 20))["fusion"] == 2
    assert opcodes(rounds(4, 1 << 10))["fusion"] > 2
    assert opcodes(rounds(40, 1 << 20))["fusion"] > 2


def test_a_reduction_of_rows_joins_the_loop_over_them() -> None:
    rows = {"KEPT": "8", "REDUCED": "1", "DIMENSION": "0"}
    module = fused(re.sub("[A-Z]{4,}", lambda m: rows.get(m[0], m[0]), _SHARES))
    assert opcodes(module) == {"parameter": 1, "fusion": 1}


def test_functions_of_short_exact_sums_have_lanes_of_their_own() -> None:
    """An exact sum has a branch; in fast mode the rows are the lanes of one kernel."""
    text = """ENTRY main {
  x = f32[500,LENGTH] parameter(0)
  zero = f32[] constant(0)
  total = f32[500] reduce(x, zero), dimensions={1}, to_apply=sum
  root = f32[500] OPCODE(total)
  ROOT negated = f32[500] negate(root) }
"""
    kernels = {}
    for length, opcode in ((3, "log"), (3, "sqrt"), (300, "log")):
        module = hlo.parse(
            f"HloModule m\n{SUM}" + text.replace("LENGTH", str(length)).replace("OPCODE", opcode)
        )
        for pipeline in ("backend_c", "backend_c_fast"):
            kernels[length, opcode, pipeline] = opcodes(run(module, pipeline))["fusion"]
    assert kernels.pop((3, "log", "backend_c")) == 2
    assert set(kernels.values()) == {1}


def test_a_reduction_of_rows_that_is_turned_stays_alone() -> None:
    """The sum of row i is needed in all rows: as column i of the result."""
    module = fused("""ENTRY main {
  x = f32[8,8] parameter(0)
  zero = f32[] constant(0)
  total = f32[8] reduce(x, zero), dimensions={1}, to_apply=sum
  wide = f32[8,8] broadcast(total), dimensions={1}
  ROOT share = f32[8,8] divide(x, wide) }
""")
    assert opcodes(module) == {"parameter": 1, "fusion": 2}


def test_a_cheap_value_of_two_fusions_is_computed_twice() -> None:
    module = fused("""ENTRY main {
  x = f32[8,9] parameter(0)
  y = f32[8,9] negate(x)
  zero = f32[] constant(0)
  total = f32[8] reduce(y, zero), dimensions={1}, to_apply=sum
  e = f32[8,9] exponential(y)
  ROOT both = (f32[8], f32[8,9]) tuple(total, e) }
""")
    assert opcodes(module) == {"parameter": 1, "fusion": 2, "tuple": 1}


def test_an_expensive_operand_of_a_broadcast_is_stored() -> None:
    module = fused("""ENTRY main {
  x = f32[9] parameter(0)
  y = f32[1000,9] parameter(1)
  e = f32[9] exponential(x)
  wide = f32[1000,9] broadcast(e), dimensions={1}
  ROOT sum = f32[1000,9] add(y, wide) }
""")
    assert opcodes(module) == {"parameter": 2, "fusion": 2}


def normalized(rows: int) -> Module:
    """Return a normalisation by columns and two sums of it, as in the gradient of a batch norm."""
    return fused(f"""ENTRY main {{
  x = f32[{rows},64] parameter(0)
  v = f32[64] parameter(1)
  zero = f32[] constant(0)
  scale = f32[64] rsqrt(v)
  scales = f32[{rows},64] broadcast(scale), dimensions={{1}}
  y = f32[{rows},64] multiply(x, scales)
  square = f32[{rows},64] multiply(y, y)
  first = f32[64] reduce(y, zero), dimensions={{0}}, to_apply=sum
  second = f32[64] reduce(square, zero), dimensions={{0}}, to_apply=sum
  ROOT both = (f32[64], f32[64]) tuple(first, second) }}
""")


@pytest.mark.parametrize("rows", [16, 1 << 13])
def test_what_is_stored_before_a_broadcast_costs_a_load(rows: int) -> None:
    # One kernel for the 64 roots, which both sums load: neither their copies nor y are stored.
    stored = [i for i in normalized(rows).entry.instructions if i.opcode == "fusion"]
    assert [array(i.shape).dims for i in stored] == [(64,)] * 3
    assert [i.operands for i in stored] == [("v",), ("scale", "x"), ("scale", "x")]


def test_heroes_and_their_operands_are_stored() -> None:
    module = fused("""ENTRY main {
  x = f32[4,4] parameter(0)
  y = f32[4,4] negate(x)
  d = f32[4,4] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[16] reshape(d) }
""")
    assert opcodes(module) == {"parameter": 1, "fusion": 1, "dot": 1, "reshape": 1}


def test_a_concatenation_of_many_parts_is_a_root() -> None:
    module = fused("""ENTRY main {
  x = f32[40] parameter(0)
  a = f32[40] exponential(x)
  b = f32[40] log(x)
  c = f32[120] concatenate(a, x, b), dimensions={0}
  ROOT r = f32[120] negate(c) }
""")
    assert opcodes(module) == {"parameter": 1, "fusion": 2}
    assert opcodes(module, "fused_concatenate")["exponential"] == 1


@pytest.mark.parametrize(
    ("part", "whole", "dimension"), [("9,9", "9,18", 1), ("1,900", "2,900", 0)]
)
def test_parts_that_have_no_loop_of_their_own_are_computed_before(
    part: str, whole: str, dimension: int
) -> None:
    """Both parts would be computed at each element of the concatenation, and one be chosen."""
    module = fused(f"""ENTRY main {{
  x = f32[{part}] parameter(0)
  a = f32[{part}] sine(x)
  b = f32[{part}] cosine(x)
  ROOT c = f32[{whole}] concatenate(a, b), dimensions={{{dimension}}} }}
""")
    parts = [c for c in module.computations if "sine" in {i.opcode for i in c.instructions}]
    assert parts and all(i.opcode != "concatenate" for c in parts for i in c.instructions)


def test_many_parts_are_computed_by_loops_of_their_own() -> None:
    """Planes that are stacked are not stored before; they are where threads choose one of them."""
    text = """ENTRY main {
  x = f32[1,900] parameter(0)
  a = f32[1,900] sine(x)
  b = f32[1,900] cosine(x)
  ROOT c = f32[3,900] concatenate(a, x, b), dimensions={0} }
"""
    assert opcodes(fused(text), "fused_concatenate")["sine"] == 1
    module = hlo.parse(f"HloModule m\n{text}")
    threads = fusion(module, TARGETS["fusion_of_exact_sums_by_threads"])
    assert "sine" not in opcodes(threads, "fused_concatenate")


def test_loops_are_fused_inside() -> None:
    module = fused("""body { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[4] add(v, v)
  less = f32[4] sine(twice)
  ROOT t = (s32[], f32[4]) tuple(next, less) }
condition { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  ten = s32[] constant(10)
  ROOT more = pred[] compare(i, ten), direction=LT }
ENTRY main { p = f32[4] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[4]) tuple(zero, p)
  w = (s32[], f32[4]) while(s), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1 }
""")
    assert opcodes(module, "body") == {
        "parameter": 1, "get-tuple-element": 2, "fusion": 2, "tuple": 1,
    }  # fmt: skip
    assert opcodes(module, "condition")["fusion"] == 1
    assert opcodes(module)["constant"] == 1


def test_updates_at_different_places_count_as_two_paths() -> None:
    """Each link of the chain doubles the code of what is before it, unless it is stored."""
    links = "\n".join(
        f"""  d{n} = f32[100] dynamic-update-slice(z, y{n}, i)
  e{n} = f32[100] dynamic-update-slice(z, y{n}, j)
  sum{n} = f32[100] add(d{n}, e{n})
  y{n + 1} = f32[60] slice(sum{n}), slice={{[0:60]}}"""
        for n in range(10)
    )
    module = fused(f"""ENTRY main {{
  y0 = f32[60] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  zero = f32[] constant(0)
  z = f32[100] broadcast(zero), dimensions={{}}
{links}
  ROOT r = f32[60] negate(y10) }}
""")
    callees = [c for c in module.computations if c.name.startswith("fused")]
    updates = [opcodes(module, c.name)["dynamic-update-slice"] for c in callees]
    assert updates and all(2 ** (count // 2) < MOST_OPERATIONS for count in updates)


def test_no_fusion_is_larger_than_the_cap() -> None:
    chain = "\n".join(f"  a{n + 1} = f32[64] add(a{n}, x)" for n in range(3 * MOST_OPERATIONS))
    module = fused(f"""ENTRY main {{
  x = f32[64] parameter(0)
  a0 = f32[64] negate(x)
{chain}
  ROOT r = f32[64] negate(a{3 * MOST_OPERATIONS}) }}
""")
    callees = [c for c in module.computations if c.name.startswith("fused")]
    assert 1 < opcodes(module)["fusion"] < 6
    assert all(len(c.instructions) < MOST_OPERATIONS + 10 for c in callees)


def test_shifted_sums_do_not_double_at_each_step() -> None:
    """Each step reads the one before at two indices: 2**40 copies if it were absorbed."""
    size, lines = 100, []
    for n in range(40):
        lines.append(f"  l{n} = f32[{size - 1}] slice(a{n}), slice={{[0:{size - 1}]}}")
        lines.append(f"  r{n} = f32[{size - 1}] slice(a{n}), slice={{[1:{size}]}}")
        lines.append(f"  a{n + 1} = f32[{size - 1}] add(l{n}, r{n})")
        size -= 1
    steps = "\n".join(lines)
    module = fused(f"""ENTRY main {{
  a0 = f32[100] parameter(0)
{steps}
  ROOT result = f32[60] negate(a40) }}
""")
    assert 5 < opcodes(module)["fusion"] < 40


def test_arrays_of_bounded_size_stay_alone() -> None:
    module = fused("""ENTRY main {
  x = f32[8] parameter(0)
  n = s32[] parameter(1)
  y = f32[<=8] set-dimension-size(x, n), dimensions={0}
  z = f32[<=8] negate(y)
  ROOT r = f32[<=8] add(z, z) }
""")
    assert opcodes(module)["fusion"] == 0


def test_every_elementwise_op_has_a_cost() -> None:
    known = set(map(function_name, COST))
    assert set(map(function_name, of_family(ELEMENTWISE))) <= known
    assert known <= set(column("hlo.ops"))


def test_rows_are_not_read_across_memory() -> None:
    """A transposition before a loop over rows that reads each several times is a map of its own,
    unless the rows stay rows."""
    text = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[4,8,16] parameter(0)
  negated = f32[4,8,16] negate(x)
  t = f32[SHAPE] transpose(negated), dimensions={ORDER}
  zero = f32[] constant(0)
  e = f32[SHAPE] exponential(t)
  sum = f32[KEPT] reduce(e, zero), dimensions={2}, to_apply=add
  wide = f32[SHAPE] broadcast(sum), dimensions={0,1}
  ROOT r = f32[SHAPE] divide(e, wide) }
"""
    for order, shape, kernels in (("0,2,1", "4,16,8", 2), ("1,0,2", "8,4,16", 1)):
        kept = shape.rpartition(",")[0]
        replaced = text.replace("SHAPE", shape).replace("ORDER", order).replace("KEPT", kept)
        assert opcodes(fused(replaced))["fusion"] == kernels


def test_a_scatter_takes_in_what_is_free() -> None:
    text = """ENTRY main {
  zero = f32[] constant(0)
  zeros = f32[50,8] broadcast(zero), dimensions={}
  i = s32[90] parameter(0)
  indices = s32[90,1] reshape(i)
  x = f32[90,8] parameter(1)
  updates = f32[90,8] OPCODE(x)
  ROOT r = f32[50,8] scatter(zeros, indices, updates), update_window_dims={1},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }
"""
    module = fused(text.replace("OPCODE", "copy"))
    assert opcodes(module) == {"parameter": 2, "fusion": 1}
    assert opcodes(module, "fused_scatter") == {
        "parameter": 2, "constant": 1, "broadcast": 1, "reshape": 1, "scatter": 1,
    }  # fmt: skip
    # What takes operations is computed before, by all threads, but for arithmetic of indices.
    assert opcodes(fused(text.replace("OPCODE", "negate"))) == {"parameter": 2, "fusion": 2}
    wrapped = """below = pred[90] compare(i, s32[90] zeros.1), direction=LT
  over = s32[90] add(i, i)
  wrapped = s32[90] select(below, over, i)
  indices = s32[90,1] reshape(wrapped)"""
    wrapped = "zeros.1 = s32[90] iota(), iota_dimension=0\n  " + wrapped
    text = text.replace("indices = s32[90,1] reshape(i)", wrapped).replace("OPCODE", "copy")
    assert opcodes(fused(text)) == {"parameter": 2, "fusion": 1}
