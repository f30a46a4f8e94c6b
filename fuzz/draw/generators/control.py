"""Generate tuples, calls, branches and loops that produce a value of a given shape.

Their computations are one drawn elementwise instruction each, or what the builder may still add.
"""

from __future__ import annotations

from collections.abc import Callable

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators import elementwise
from fuzz.draw.shapes import Accepts, size_to
from hlo.aliasing import Alias
from hlo.attributes import Attribute, Domain
from hlo.types import PRED, S32, TOKEN, ArrayShape, Shape, TupleShape

_MOST_TURNS = 4
_MOST_DEPTH = 3
_RETURNS = 8  # one computation in so many returns a value that is there, if there is one

Computed = Callable[[Builder, list[str]], str]  # a root, from the names of the parameters


def computed(inner: Builder, shape: ArrayShape) -> str:
    """Draw the instruction that computations shall have, else an elementwise one that may be added,
    or an existing value, as a parameter: compilers take what returns it for nothing, or for no
    instruction where they expect one."""
    called = inner.called(shape)
    if called is not None:
        return called(inner, shape)
    if inner.chance(_RETURNS):
        return inner.value(shape)
    able = [
        generator
        for opcode, (generator, accepts) in elementwise.GENERATORS.items()
        if opcode in inner.opcodes and accepts(shape)
    ]
    return inner.choice([Builder.value, *able])(inner, shape)


def _other(builder: Builder, depth: int = _MOST_DEPTH) -> str:
    """Draw a value of any shape: an array, or a tuple of values, perhaps of none."""
    if depth and builder.integer(0, 2) == 0:
        count = builder.integer(0, 2)
        return builder.tuple(*(_other(builder, depth - 1) for _ in range(count)))
    dims = builder.choice([(), (3,), (2, 2), (size_to(builder, 4),)])
    return builder.value(ArrayShape(builder.choice(builder.types), dims))


def _wrapped(builder: Builder, name: str) -> tuple[str, list[int]]:
    """Nest a value in tuples with others; return the outermost, and the index path to the value."""
    path: list[int] = []
    for _ in range(builder.integer(1, _MOST_DEPTH)):
        before = [_other(builder) for _ in range(builder.integer(0, 2))]
        after = [_other(builder) for _ in range(builder.integer(0, 1))]
        name = builder.tuple(*before, name, *after)
        path.insert(0, len(before))
    return name, path


def unwrapped(builder: Builder, name: str, path: list[int]) -> str:
    for index in path:
        shape = builder.shape(name)
        assert isinstance(shape, TupleShape)
        name = builder.emit("get-tuple-element", shape.elements[index], name, index=index)
    return name


def _rebuilt(builder: Builder, name: str, path: list[int], value: str) -> str:
    """Rebuild the tuple ``name`` with ``value`` in place of the element at ``path``."""
    if not path:
        return value
    shape = builder.shape(name)
    assert isinstance(shape, TupleShape)
    elements = [unwrapped(builder, name, [index]) for index in range(len(shape.elements))]
    elements[path[0]] = _rebuilt(builder, elements[path[0]], path[1:], value)
    return builder.tuple(*elements)


def tuple_(builder: Builder, shape: ArrayShape) -> str:
    return unwrapped(builder, *_wrapped(builder, builder.value(shape)))


def get_tuple_element(builder: Builder, shape: ArrayShape) -> str:
    return tuple_(builder, shape)


def _identity(opcode: str) -> Generator:
    """Draw an instruction that forwards an array or a tuple."""

    def generator(builder: Builder, shape: ArrayShape) -> str:
        name, path = builder.value(shape), list[int]()
        if builder.boolean():
            name, path = _wrapped(builder, name)
        return unwrapped(builder, builder.emit(opcode, builder.shape(name), name), path)

    return generator


_SHARDINGS = ("{replicated}", "{maximal device=0}", "{devices=[2]0,1}", "{}")


def domain(builder: Builder, shape: ArrayShape) -> str:
    """Draw a domain around an array or a tuple, with any shardings."""
    name, path = builder.value(shape), list[int]()
    if builder.boolean():
        name, path = _wrapped(builder, name)
    entry, exit_ = (builder.choice(_SHARDINGS) for _ in range(2))
    given = Domain("sharding", entry, exit_)
    return unwrapped(builder, builder.emit("domain", builder.shape(name), name, domain=given), path)


def after_all(builder: Builder, shape: ArrayShape) -> str:
    name = builder.value(shape)
    count = builder.integer(0, 2)  # a token that nothing waits for would be dead code in a fusion
    waits = [_token(builder) if builder.boolean() else name for _ in range(count)]
    token = builder.emit("after-all", ArrayShape(TOKEN), *waits)
    return builder.emit("add-dependency", shape, name, token)


def _token(builder: Builder) -> str:
    return builder.emit("after-all", ArrayShape(TOKEN))


def add_dependency(builder: Builder, shape: ArrayShape) -> str:
    name, path = builder.value(shape), list[int]()
    if builder.boolean():
        name, path = _wrapped(builder, name)
    result = builder.emit("add-dependency", builder.shape(name), name, _token(builder))
    return unwrapped(builder, result, path)


def _calling(opcode: str, attribute: str, **attributes: str | bool) -> Generator:
    """Draw a call with some arguments: its result is an array, or a tuple around it."""

    def generator(builder: Builder, shape: ArrayShape) -> str:
        arguments = [_other(builder, 1) for _ in range(builder.integer(0, 2))]
        arguments.append(builder.value(shape))
        path: list[int] = []

        def result(inner: Builder, names: list[str]) -> str:
            root = computed(inner, shape)
            unused = inner.unused(names, root) if opcode == "fusion" else []
            if unused:  # XLA allows no fusion that does not use what it is given
                root, path[:] = inner.tuple(root, *unused), [0]
            elif inner.boolean():
                root, path[:] = _wrapped(inner, root)
            found.append(inner.shape(root))
            return root

        found: list[Shape] = []
        callee = builder.computation([builder.shape(name) for name in arguments], result)
        given: dict[str, Attribute] = {attribute: callee, **attributes}
        if opcode == "fusion":
            kinds = ("kLoop", "kInput", "kOutput", "kCustom")
            given["kind"] = builder.choice(kinds)
            if found[0] == builder.shape(arguments[0]) and builder.boolean():
                given["output_to_operand_aliasing"] = (Alias((), 0, ()),)
        elif builder.boolean():
            given["is_composite"] = True
        name = builder.emit(opcode, found[0], *arguments, **given)
        if "is_composite" in given:
            builder.annotate(name, frontend_attributes='{composite.name="fuzz.drawn"}')
        return unwrapped(builder, name, path)

    return generator


def map_(builder: Builder, shape: ArrayShape) -> str:
    types = [shape.element_type]
    types += builder.several(lambda: builder.choice(builder.types), 0, 2)
    operands = [builder.value(ArrayShape(t, shape.dims)) for t in types]
    scalar = ArrayShape(shape.element_type)
    to_apply = builder.computation(
        [ArrayShape(t) for t in types], lambda inner, names: computed(inner, scalar)
    )
    dimensions = tuple(range(shape.rank))
    return builder.emit("map", shape, *operands, dimensions=dimensions, to_apply=to_apply)


def while_(builder: Builder, shape: ArrayShape) -> str:
    """Draw a loop of a few trips, counted by an element of its state."""
    turns = builder.integer(0, _MOST_TURNS)
    counter = ArrayShape(S32)
    start = builder.number(counter, _MOST_TURNS - turns)
    init, path = _wrapped(builder, builder.value(shape))
    state = builder.tuple(start, init)
    path = [1, *path]

    def condition(inner: Builder, names: list[str]) -> str:
        count = unwrapped(inner, names[0], [0])
        limit = inner.number(counter, _MOST_TURNS)
        return inner.emit("compare", ArrayShape(PRED), count, limit, direction="LT")

    def body(inner: Builder, names: list[str]) -> str:
        count = unwrapped(inner, names[0], [0])
        count = inner.emit("add", counter, count, inner.number(counter, 1))
        # Only to be there: what is computed then may read the old value.
        unwrapped(inner, names[0], path)
        changed = _rebuilt(inner, names[0], path, computed(inner, shape))
        return _rebuilt(inner, changed, [0], count)

    return unwrapped(builder, loop(builder, state, condition, body), path)


def loop(builder: Builder, state: str, condition: Computed, body: Computed) -> str:
    """Add a loop over a state by what its condition and its body compute of the state."""
    shape = builder.shape(state)
    called = {
        "condition": builder.computation([shape], condition),
        "body": builder.computation([shape], body),
    }
    return builder.emit("while", shape, state, **called)


def conditional(builder: Builder, shape: ArrayShape) -> str:
    """Draw a conditional on a pred or an index, in range or not, with an operand for each
    branch."""
    by_pred = builder.boolean()
    count = 2 if by_pred else builder.integer(1, 4)
    in_tuple = builder.boolean()
    selector = builder.value(ArrayShape(PRED if by_pred else S32))
    operands, branches = [], []
    for _ in range(count):
        operands.append(builder.value(shape) if builder.boolean() else _other(builder))
        branches.append(
            builder.computation([builder.shape(operands[-1])], _branch(shape, in_tuple))
        )
    result = TupleShape((shape,)) if in_tuple else shape
    named: dict[str, str | tuple[str, ...]] = {"branch_computations": tuple(branches)}
    if by_pred:
        named = {"true_computation": branches[0], "false_computation": branches[1]}
    name = builder.emit("conditional", result, selector, *operands, **named)
    return unwrapped(builder, name, [0] if in_tuple else [])


def _branch(shape: ArrayShape, in_tuple: bool) -> Callable[[Builder, list[str]], str]:
    def branch(inner: Builder, names: list[str]) -> str:
        root = computed(inner, shape)
        return inner.tuple(root) if in_tuple else root

    return branch


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "tuple": (tuple_, lambda shape: True),
    "get-tuple-element": (get_tuple_element, lambda shape: True),
    "opt-barrier": (_identity("opt-barrier"), lambda shape: True),
    "domain": (domain, lambda shape: True),
    "after-all": (after_all, lambda shape: True),
    "add-dependency": (add_dependency, lambda shape: True),
    "call": (_calling("call", "to_apply"), lambda shape: True),
    "fusion": (_calling("fusion", "calls"), lambda shape: True),
    "map": (map_, lambda shape: True),
    "while": (while_, lambda shape: True),
    "conditional": (conditional, lambda shape: True),
}
