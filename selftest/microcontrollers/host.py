"""Run the emitted C99 of a module on this machine."""

from __future__ import annotations

import ctypes
import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import backend_c
from hlo.module import Module
from hlo.types import ELEMENT_TYPES, TupleShape
from hlo.values import arrays_of


def results_here(module: Module, values: Sequence[Any], flags: Sequence[str] = ("-O2",)) -> Any:
    """Run fast C99, compiled with ``flags``, on arguments; return an array of a static shape, or a
    tuple of them."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        files = backend_c.emit(module, "embedded", "fast")
        for file, content in files.items():
            (directory / file).write_bytes(content)
        manifest = json.loads(files["manifest.json"])
        sources = [file for file in files if file.endswith(".c")]
        command = ["cc", "-std=c99", *flags, "-ffp-contract=off", "-shared", "-fPIC", *sources]
        subprocess.run([*command, "-o", "module.so"], cwd=directory, check=True)
        library = ctypes.CDLL(str(directory / "module.so"))
        inputs = [np.ascontiguousarray(array) for array in arrays_of(tuple(values))]
        outputs = [
            np.empty(result["shape"], ELEMENT_TYPES[result["type"]].numpy)
            for result in manifest["results"]
        ]
        workspace = np.empty(manifest["workspace_bytes"] // 8 + 1, np.uint64)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*inputs, *outputs, workspace)]
        status = library.module_run(*pointers, *[ctypes.c_uint64(0)] * manifest["takes_seed"])
        assert status == 0, status
    is_tuple = isinstance(module.entry.root_instruction.shape, TupleShape)
    return tuple(outputs) if is_tuple else outputs[0]
