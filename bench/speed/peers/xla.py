"""XLA's CPU compiler from the same HLO text, called as a jitted function of JAX is."""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import Any

import numpy as np

import hlo
from bench.speed.peers.subject import Compiled, Question, Subject
from fuzz.peers.jaxlib_modules import of_hlo, of_mlir
from fuzz.peers.synchronous_form import synchronous
from hlo.types import array_leaves


def ready(question: Question) -> Subject:
    """Compile a program for arrays on the device.

    The text becomes a StableHLO function that a primitive of JAX calls, so that ``jax.jit``
    dispatches it from C++: 5.8 µs a call, where ``execute_sharded`` takes 7.7.
    """
    if question.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    jax: Any = import_module("jax")  # its functions are not typed
    import_module("jaxlib.lapack")._lapack.initialize()  # or LAPACK's custom calls crash
    jax.config.update("jax_enable_x64", True)  # f64 stays f64
    jax.config.update("jax_compilation_cache_dir", question.cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.jit(lambda x: -x)(np.float32(1)).block_until_ready()  # the client, and LLVM's tables
    function = jitted(question.text())
    arrays = [jax.device_put(array) for array in question.arrays()]
    seconds = []
    for _ in range(question.compilations):
        jax.clear_caches()
        begin = time.perf_counter()
        function.lower(*arrays).compile()
        seconds.append(time.perf_counter() - begin)
    compiled = Compiled(seconds[0], seconds[-1], f"jax {jax.__version__}")

    def call() -> Any:
        results = function(*arrays)
        for result in results:
            result.block_until_ready()
        return results

    return Subject(call, lambda results: [np.asarray(one) for one in results], compiled)


def jitted(text: str) -> Any:
    """Make a jitted function of HLO text; it returns a list."""
    names = ("jax", "jax._src.core", "jax._src.interpreters.mlir", "jax.extend.core")
    jax, core, mlir, extend = map(import_module, names)
    ir, func = map(import_module, ("jaxlib.mlir.ir", "jaxlib.mlir.dialects.func"))
    program = stablehlo(text)
    shapes = _jax_shapes(text)
    primitive: Any = extend.Primitive("hlo_program")
    primitive.multiple_results = True
    primitive.def_abstract_eval(lambda *_: [core.ShapedArray(*shape) for shape in shapes])

    def lowering(context: Any, *operands: Any) -> Any:
        module = context.module_context
        source = ir.Module.parse(program, context=module.context)
        name = mlir.merge_mlir_modules(
            module.module, "hlo_program", source, dst_symtab=module.symbol_table
        )
        types = [mlir.aval_to_ir_type(module, aval) for aval in context.avals_out]
        called = ir.FlatSymbolRefAttr.get(name)
        return func.CallOp(types, called, list(operands)).results

    mlir.register_lowering(primitive, lowering)
    return jax.jit(lambda *arguments: primitive.bind(*arguments))


def stablehlo(text: str) -> str:
    """Convert HLO text to StableHLO; an op that this cannot express, to an equivalent form."""
    try:
        return _converted(text)
    except (RuntimeError, ValueError):
        return _converted(hlo.format(synchronous(hlo.parse(text))))


def _converted(text: str) -> str:
    proto = of_hlo().hlo_module_from_text(text).as_serialized_hlo_module_proto()
    computation = of_hlo().XlaComputation(proto)
    program: str = of_mlir().mlir.xla_computation_to_mlir_module(computation)
    return program


def _jax_shapes(text: str) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    root = hlo.parse(text).entry.root_instruction.shape
    return [(leaf.dims, leaf.element_type.numpy) for leaf in array_leaves(root)]
