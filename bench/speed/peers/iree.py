"""IREE's compiler for CPUs, from the StableHLO that jaxlib makes of HLO text."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import numpy as np

from bench.speed.peers.subject import Compiled, Question, Subject
from bench.speed.peers.xla import stablehlo
from hlo.errors import Unsupported
from hlo.values import Array

_ARGUMENTS = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")


def ready(question: Question) -> Subject:
    """Compile a program and copy its arguments to the device. IREE keeps no cache."""
    compiler: Any = import_module("iree.compiler")
    runtime: Any = import_module("iree.runtime")
    driver = "local-task"
    if question.threads == 1:
        runtime.flags.parse_flags("--task_topology_group_count=1")
    program = _without_attributes(stablehlo(question.text()))
    begin = time.perf_counter()
    try:
        code = compiler.compile_str(
            program, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=[*_ARGUMENTS]
        )
    except compiler.CompilerToolError as error:
        lines = [line for line in str(error).splitlines() if "error:" in line]
        raise Unsupported(lines[0].partition("error:")[2] if lines else str(error)) from None
    cold = time.perf_counter() - begin
    function = runtime.load_vm_flatbuffer(code, driver=driver).main
    device = runtime.get_device(driver)
    arguments = [runtime.asdevicearray(device, array) for array in question.arrays()]

    def arrays(result: Any) -> list[Array]:
        results = result if isinstance(result, (tuple, list)) else (result,)
        return [np.asarray(one.to_host()) for one in results]

    version = f"iree {import_module('iree.compiler.version').VERSION}"
    return Subject(lambda: function(*arguments), arrays, Compiled(cold, None, version))


def _without_attributes(program: str) -> str:
    """Drop the module's attributes, whose dialect IREE does not have."""
    ir: Any = import_module("jaxlib.mlir.ir")
    with import_module("jax._src.interpreters.mlir").make_ir_context():
        module = ir.Module.parse(program)
        attributes = module.operation.attributes
        for name in [one if isinstance(one, str) else one.name for one in attributes]:
            if name.startswith("mhlo."):
                del attributes[name]
        text: str = module.operation.get_asm(enable_debug_info=False)
    return text
