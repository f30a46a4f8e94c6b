"""Run TensorFlow functions as C: ``ho.tensorflow.jit(f)``.

TensorFlow traces a function and translates it to HLO (``experimental_get_compiler_ir``), from which
C is made: all of it, or :class:`Unsupported` says why. XLA compiles and runs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import backend_c
import hlo
from backend_c.native.cache import Directory
from hlo.errors import Unsupported
from hlo_oracle.frontends.jax_functions import name_of
from hlo_oracle.required_packages import require_package

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["CompiledFunction", "jit"]

_GUARD = "AssertGuard"  # what TensorFlow calls the branch around an assertion

# What XLA says, or TensorFlow before it, and what to do about it.
_LIST = (
    "give tf.while_loop maximum_iterations, which its gradient needs, and tf.TensorArray its size,"
    " without dynamic_size"
)
_ADVICE = (
    ("tensor list size", _LIST),
    ("TensorList", _LIST),
    ("TensorArray", _LIST),
    ("maximum_iterations", _LIST),
    ("unsupported operations", "leave these operations out of the function, around its call"),
    ("compile-time constant", "make this argument a Python number: its value decides a shape"),
)


class Assertion(NamedTuple):
    """An assertion of a function: its name, and the user's line of Python."""

    name: str
    line: str


class Specialization(NamedTuple):
    """A traced function as C: its variables and other captured tensors, the number of results, the
    variable that each further result updates, and its assertions."""

    executable: backend_c.Executable
    text: str
    captured: tuple[Any, ...]
    results: int
    updates: tuple[Any, ...]
    structure: Any
    assertions: tuple[Assertion, ...]


class CompiledFunction:
    """A TensorFlow function that runs as C, compiled once for each signature of arguments."""

    __name__: str

    def __init__(
        self, function: Callable[..., Any], compile: Callable[..., backend_c.Executable]
    ) -> None:
        import tensorflow as tf

        python = getattr(function, "python_function", function)
        signature = getattr(function, "input_signature", None)
        self._assertions: list[Assertion] = []
        self._python = python
        checked = self._checked(python)
        self._traced = tf.function(checked, input_signature=signature, jit_compile=True)
        self._compile = compile
        self._made: dict[int, tuple[Any, Specialization]] = {}
        update_wrapper(self, python)
        self.__name__ = name_of(python)  # which models and signatures lack

    def __repr__(self) -> str:
        return f"ho.tensorflow.jit({self.__name__}): {len(self._made)} compiled"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind a method to its object."""
        return self if instance is None else partial(self, instance)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run on arguments as TensorFlow takes them; return tensors, and assign variables.

        Raises Unsupported for a function that cannot become C, and InvalidArgumentError if one of
        its assertions fails, in which case variables are left unchanged.
        """
        import tensorflow as tf

        with _seeds_kept():
            concrete, made = self._found(arguments, keywords)
        seed = _seed()
        given = _flat(concrete, arguments, keywords)
        arrays = [np.asarray(_value(x)) for x in (*given, *made.captured)]
        value: Any = made.executable(*arrays, seed=seed)
        values = list(value) if isinstance(value, tuple) else [value]
        count = len(made.assertions)
        # All assertions are checked before a variable is assigned: a call that fails changes
        # nothing.
        for assertion, holds in zip(made.assertions, values[made.results - count :], strict=False):
            if not np.all(holds):
                message = f"assertion failed: {assertion.name} ({assertion.line})"
                raise tf.errors.InvalidArgumentError(None, None, message)
        for variable, array in zip(made.updates, values[made.results :], strict=True):
            variable.assign(array)
        results = [tf.convert_to_tensor(x) for x in values[: made.results - count]]
        return tf.nest.pack_sequence_as(made.structure, results)

    def executable(self, *arguments: Any, **keywords: Any) -> backend_c.Executable:
        """Return the executable for such arguments; compile it if it is not cached."""
        return self._found(arguments, keywords)[1].executable

    def text(self, *arguments: Any, **keywords: Any) -> str:
        """Return the HLO for such arguments."""
        return self._found(arguments, keywords)[1].text

    def _checked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Extend a traced function by the conditions of its assertions as further results."""
        from tensorflow.compat.v1 import get_default_graph

        def checked(*arguments: Any, **keywords: Any) -> Any:
            value = function(*arguments, **keywords)
            guards = [op for op in get_default_graph().get_operations() if _is_assertion(op)]
            self._assertions[:] = [Assertion(op.name, _line(op)) for op in guards]
            return value, [op.inputs[0] for op in guards]

        return update_wrapper(checked, function)  # with its signature, which tf.function reads

    def _found(
        self, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[Any, Specialization]:
        """Trace the function for arguments; return that, and its specialization."""
        try:
            concrete = self._traced.get_concrete_function(*arguments, **keywords)
        except Exception as error:  # whatever the function raises while it is traced
            raise _refused(self.__name__, error) from error
        known = self._made.get(id(concrete))
        if known is None:
            made = self._specialized(concrete, arguments, keywords)
            # ``concrete`` is held, so that no other function gets its id.
            known = self._made[id(concrete)] = (concrete, made)
        return known

    def _specialized(
        self, concrete: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Specialization:
        """Translate and compile a traced function."""
        try:
            produced = self._traced.experimental_get_compiler_ir(*arguments, **keywords)
            text = str(produced(stage="hlo"))
        except Exception as error:  # of many kinds: what XLA's bridge says is in the text
            raise _refused(self.__name__, error) from error
        module = hlo.parse(text)
        hlo.verify(module)
        captured = _captured(concrete)
        structure, assertions = concrete.structured_outputs
        count = len(concrete.outputs)
        parameters = len(module.entry.parameters)
        expected = len(concrete.inputs)
        if parameters != expected:
            raise Unsupported(
                f"{self.__name__}: {expected} arguments and captured tensors became {parameters}"
                " parameters: an argument decides a shape; give it as a Python number"
            )
        explicit = expected - len(captured)
        aliases: Any = module.attributes.get("input_output_alias", ())
        updated = {alias.output[0] if alias.output else 0: alias.number for alias in aliases}
        updates = (captured[updated[n] - explicit] for n in sorted(updated) if n >= count)
        try:
            executable = self._compile(module)
        except Unsupported as error:
            raise Unsupported(f"{self.__name__}: {error}") from error
        return Specialization(
            executable, text, captured, count, tuple(updates), structure, tuple(self._assertions)
        )


def jit(
    function: Callable[..., Any] | None = None,
    *,
    numerics: str = "fast",
    threads: int | None = None,
    cache: Directory | None = None,
) -> Any:
    """Make a TensorFlow function run as C, all of it; raises Unsupported where a part of it cannot.

    ``function`` is Python's or a ``tf.function``; use it as a decorator, too. ``numerics``
    (``fast`` or ``exact``), ``threads`` and ``cache`` are those of :func:`backend_c.compile`.
    """
    if function is None:
        return partial(jit, numerics=numerics, threads=threads, cache=cache)
    require_package("to run TensorFlow's functions", "tensorflow", "tensorflow")
    compile = partial(backend_c.compile, numerics=numerics, threads=threads, cache=cache)
    return CompiledFunction(function, compile)


def _is_assertion(operation: Any) -> bool:
    """Test for an assertion, or the branch around one, outside of other loops and branches."""
    guards = operation.type in ("If", "StatelessIf") and _GUARD in operation.name
    return guards or operation.type == "Assert"


def _line(operation: Any) -> str:
    """Return the user's line of Python that created an operation."""
    frames = [x for x in operation.traceback or () if "/tensorflow/" not in x.filename]
    frames = [x for x in frames if not x.filename.endswith("hlo_oracle/frontends/tensorflow.py")]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "no line"


def _captured(concrete: Any) -> tuple[Any, ...]:
    """Return a traced function's captured variables, and its other captured tensors, in order."""
    known = {id(x.handle): x for x in concrete.graph.variables}
    return tuple(known.get(id(x), x) for x in concrete.captured_inputs)


def _flat(concrete: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """Flatten the tensors among arguments to the order of the function's inputs."""
    bound = concrete.function_type.bind(*arguments, **keywords)
    return list(concrete.function_type.unpack_inputs(bound))


def _value(x: Any) -> Any:
    return x.numpy() if hasattr(x, "numpy") else x


@contextmanager
def _seeds_kept() -> Iterator[None]:
    """Restore TensorFlow's seed generator after a block, as tracing draws seeds."""
    from tensorflow.python.eager import context  # which has no public name

    generator = getattr(context.context(), "_rng", None)
    state = None if generator is None else generator.getstate()
    yield
    if generator is not None:
        generator.setstate(state)


def _seed() -> int:
    """Return the seed of one call: the next one after ``tf.random.set_seed``, else a random one."""
    from tensorflow.compat.v1 import get_seed

    chosen, operation = get_seed(None)
    if chosen is None and operation is None:
        return int.from_bytes(os.urandom(8), "little")
    return (int(chosen or 0) << 32) ^ int(operation or 0)


def _refused(name: str, error: Exception) -> Unsupported:
    """Format TensorFlow's reason why a function has no HLO, with a remedy if one is known."""
    text = str(error)
    said = [line.strip() for line in text.splitlines() if line.strip()]
    first = said[0] if said else type(error).__name__
    advice = next((f"; {way}" for sign, way in _ADVICE if sign in text), "")
    return Unsupported(f"{name}: TensorFlow cannot translate it to HLO: {first[:400]}{advice}")
