"""Compile JAX functions to C, whole or not at all: :func:`jit`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from typing import Any, NamedTuple

import backend_c
from backend_c.native.cache import Directory
from hlo.errors import Unsupported
from hlo_oracle.frontends import jax_functions
from hlo_oracle.frontends.jax_functions import JittedFunction, LoweredFunction
from hlo_oracle.loading import objects
from hlo_oracle.required_packages import require_package


class CacheInfo(NamedTuple):
    """Numbers of calls that found compiled C and that had to compile, and of specializations
    kept."""

    hits: int
    misses: int
    currsize: int


class Specialization(NamedTuple):
    """C compiled for arguments of one pytree structure, with their shapes and types."""

    lowered: LoweredFunction
    executable: backend_c.Executable

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run on the leaves of arguments; return arrays in the structure of the result."""
        given = (jax_functions.array_of(leaves[n]) for n in self.lowered.kept)
        return self.lowered.structured(self.executable(*self.lowered.constants, *given))


class CompiledFunction(JittedFunction):
    """A JAX function that runs as C, compiled once for each structure, shapes and types of
    arguments."""

    __name__: str

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Sequence[int] | None,
        static_argnames: str | Sequence[str] | None,
        compile: Callable[..., backend_c.Executable],
    ) -> None:
        jax_functions.require_no_tensorflow(function)
        require_package("to lower a function", "jax", "jax")
        self._function = function
        static = static_argnums, static_argnames
        super().__init__(*jax_functions.jitted_function(function, *static))
        self._compile = compile
        self._made: dict[object, Specialization] = {}
        self._hits = self._misses = 0
        self._changing = threading.Lock()
        update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"ho.jit({jax_functions.name_of(self._jitted)}): {len(self._made)} compiled"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind a method to its object, which JAX then treats as a pytree or a static argument."""
        return self if instance is None else partial(self, instance)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run on arguments as JAX takes them; the result has NumPy arrays as leaves.

        Raises Unsupported for what C does not take, with the line of Python that it comes from.
        """
        made, leaves = self._found(arguments, keywords)
        return made(leaves)

    def executable(self, *arguments: Any, **keywords: Any) -> backend_c.Executable:
        """Return the executable for such arguments; compile it if it is not cached."""
        return self._found(arguments, keywords)[0].executable

    def source(self, *arguments: Any, **keywords: Any) -> Mapping[str, str]:
        """Return the C for such arguments by file name."""
        return self.executable(*arguments, **keywords).source

    def explain(self, *arguments: Any, **keywords: Any) -> backend_c.Profile:
        """Return the kernels for such arguments: what is fused in each, bytes and operations."""
        return self.executable(*arguments, **keywords).explain()

    def cache_info(self) -> CacheInfo:
        """Count the calls that found C and those that compiled, as ``functools.cache`` does."""
        return CacheInfo(self._hits, self._misses, len(self._made))

    def cache_clear(self) -> None:
        """Forget what is compiled; libraries stay on disk."""
        with self._changing:
            self._made.clear()
            self._hits = self._misses = 0

    def _found(
        self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[Specialization, list[Any]]:
        """Find the specialization for arguments, compiling if there is none; return it and their
        leaves."""
        arguments = (*self._own, *arguments)
        leaves, key = jax_functions.kind_of(self._jitted, arguments, keywords)
        made = self._made.get(key)
        if made is not None:
            self._hits += 1
            return made, leaves
        with self._changing:
            made = self._made.get(key)
            if made is None:
                self._misses += 1
                made = self._made[key] = self._specialized(arguments, keywords)
        return made, leaves

    def _specialized(
        self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> Specialization:
        """Lower and compile for the structure, shapes and types of the arguments."""
        lowered = jax_functions.lower(self._jitted, arguments, keywords)
        try:
            return Specialization(lowered, self._compile(objects.load(lowered.text)))
        except Unsupported as error:
            raise Unsupported(
                f"{lowered.name}: {error}; jax.jit compiles it by XLA, ho.run evaluates it exactly"
            ) from error


def jit(
    function: Callable[..., Any] | None = None,
    *,
    numerics: str = "fast",
    threads: int | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    cache: Directory | None = None,
) -> Any:
    """Make a JAX function run as C, all of it; raises Unsupported where a part of it cannot.

    Use it as ``jax.jit``, also as a decorator: it compiles at the first call with arguments of a
    structure, with their shapes and types, and takes and gives pytrees; leaves of results are NumPy
    arrays. ``numerics`` (``fast`` or ``exact``), ``threads`` and ``cache`` are those of
    :func:`backend_c.compile`. Transform first (``ho.jit(jax.grad(f))``): JAX sees no C.
    """
    if function is None:
        return partial(
            jit,
            numerics=numerics,
            threads=threads,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            cache=cache,
        )
    compile = partial(backend_c.compile, numerics=numerics, threads=threads, cache=cache)
    return CompiledFunction(function, static_argnums, static_argnames, compile)
