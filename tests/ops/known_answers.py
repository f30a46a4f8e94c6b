"""Records known_answers.json: for each opcode a few programs, their arguments, and what jaxlib's
XLA answers on the CPU.

    cd tests && PYTHONPATH=.:.. python ops/known_answers.py > ops/known_answers.json

Programs are those of against_jax.drawn, small ones; opcodes that XLA does not run on one CPU (most
collectives, and those that read or write what is outside) have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

import hlo
from hlo.module import Module
from hlo.types import ELEMENT_TYPES, element_type_of, leaves

_PROGRAMS, _TRIED, _LARGEST = 2, 24, 24
_SEED = 5
# What reads or writes elsewhere, numbers that are free, sizes that mean nothing where they are
# drawn.
_ELSEWHERE = {
    *("send", "send-done", "recv", "recv-done", "infeed", "outfeed"),
    *("rng", "rng-get-and-update-state"),
    *("dynamic-reshape", "get-dimension-size", "set-dimension-size"),
}


def row(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON: complex numbers as two lists, one of each part."""
    kind = element_type_of(array.dtype)
    assert kind is not None
    parts = [array.real, array.imag] if kind.is_complex else [array]
    as_numbers = np.float64 if kind.is_inexact else object
    numbers = [part.astype(as_numbers).reshape(-1).tolist() for part in parts]
    if not kind.is_inexact:
        numbers = [[int(n) for n in part] for part in numbers]
    return {"type": str(kind), "dims": list(array.shape), "numbers": numbers}


def array(saved: dict[str, Any]) -> np.ndarray:
    """Read the array that :func:`row` wrote."""
    kind = ELEMENT_TYPES[saved["type"]]
    if not kind.is_complex:
        whole = np.array(saved["numbers"][0], None if kind.is_float else object)
        return whole.astype(kind.numpy).reshape(saved["dims"])
    result = np.empty(len(saved["numbers"][0]), kind.numpy)
    result.real, result.imag = saved["numbers"]
    return result.reshape(saved["dims"])


def _is_small(module: Module, arrays: tuple[np.ndarray, ...]) -> bool:
    results = leaves(module.entry.root_instruction.shape)
    sizes = [one.elements for one in results] + [array.size for array in arrays]
    return bool(results) and all(0 < size <= _LARGEST for size in sizes)


def _is_of_types(module: Module, results: tuple[np.ndarray, ...]) -> bool:
    """XLA:CPU gives random floats and numbers of one bit as those of other types."""
    declared = [one.element_type for one in leaves(module.entry.root_instruction.shape)]
    return declared == [element_type_of(one.dtype) for one in results]


def recorded() -> Iterator[dict[str, Any]]:
    from against_jax import drawn

    from fuzz.draw.programs import GENERATORS
    from fuzz.peers.xla import XLA

    with XLA() as xla:
        for opcode in sorted(set(GENERATORS) - _ELSEWHERE):
            found, types = 0, set[str]()
            for module, arrays in drawn.once(opcode, _SEED, "small", _TRIED):
                type_name = str(module.entry.root_instruction.shape)
                if found == _PROGRAMS or type_name in types or not _is_small(module, arrays):
                    continue
                text = hlo.format(module)
                answer = xla(text, arrays)
                if answer.outputs is None or not _is_of_types(module, answer.outputs):
                    continue
                found, types = found + 1, types | {type_name}
                yield {
                    "opcode": opcode,
                    "hlo": text.strip().splitlines(),
                    "arguments": [row(one) for one in arrays],
                    "results": [row(one) for one in answer.outputs],
                }


if __name__ == "__main__":
    before = "["
    for one in recorded():
        print(f"{before}\n{json.dumps(one)}", end="", flush=True)
        before = ","
    print("\n]")
