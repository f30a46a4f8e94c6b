"""Processes of one client: how they meet, what they give each other, what they say when they do
not."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo
from hlo.errors import CollectiveError, DeviceError, Unsupported
from hlo.types import ArrayShape
from hlo_oracle.frontends.pjrt.declarations import structure
from hlo_oracle.frontends.pjrt.errors import Failed
from hlo_oracle.frontends.pjrt.key_value_store import KeyValueStore
from hlo_oracle.frontends.pjrt.plugin import Plugin
from hlo_oracle.frontends.pjrt.processes import Processes, joined

SESSION = Path(__file__).with_name("distributed_session.py")


class Shared:
    """A store of threads, which stand for processes."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.changed = threading.Condition()

    def get(self, key: str, seconds: float) -> bytes:
        with self.changed:
            assert self.changed.wait_for(lambda: key in self.values, seconds)
            return self.values[key]

    def put(self, key: str, value: bytes) -> None:
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()


def in_each(count: int, run: Callable[[Processes], Any]) -> list[Future[Any]]:
    """Run a function in so many processes, which have 1, 2, … devices."""
    store = Shared()

    def one(number: int) -> Any:
        options = {"node_id": number, "num_nodes": count}
        here = joined(options, store, 1 + number, "test")
        try:
            return run(here)
        finally:
            here.leave()

    with ThreadPoolExecutor(count) as threads:
        return [threads.submit(one, number) for number in range(count)]


def shapes_of(*texts: str) -> list[ArrayShape]:
    """The shapes of parameters, as text."""
    lines = [f"  p{n} = {text} parameter({n})" for n, text in enumerate(texts)]
    module = hlo.parse(
        "\n".join(["HloModule m", "ENTRY e {", *lines, "  ROOT c = s32[] constant(0)\n}"])
    )
    return [p.shape for p in module.entry.parameters]  # type: ignore[misc]


SHAPES = shapes_of("f32[2,3]", "token[]", "bf16[]", "pred[0,4]", "s4[3]", "c128[2]")


@settings(max_examples=5)
@given(st.permutations([0, 1, 1, 2, 2, 2]))
def test_every_process_has_the_arguments_of_all_ranks(owners: list[int]) -> None:
    rng = np.random.default_rng(0)
    rows = [
        tuple(
            rng.integers(-7, 7, shape.dims).astype(shape.element_type.numpy)
            if shape.element_type.is_array
            else None
            for shape in SHAPES
        )
        for _ in owners
    ]

    def run(here: Processes) -> list[Any]:
        assert here.devices == (1, 2, 3)
        mine = [row for row, owner in zip(rows, owners) if owner == here.number]
        return [here.gathered("m", SHAPES, owners, mine) for _ in range(2)]

    for done in in_each(3, run):
        for found in done.result():
            for row, wanted in zip(found, rows, strict=True):
                for one, other in zip(row, wanted, strict=True):
                    assert (one is None) == (other is None)
                    if one is not None:
                        assert one.dtype == other.dtype and one.shape == other.shape
                        assert one.tobytes() == other.tobytes()


def test_more_than_a_pipe_holds() -> None:
    shapes, large = shapes_of("u8[4000000]"), np.arange(4_000_000).astype(np.uint8)
    for done in in_each(2, lambda here: here.gathered("m", shapes, [0, 1], [(large,)])):
        assert all(np.array_equal(row[0], large) for row in done.result())


def test_another_program_in_another_process_is_an_error_in_both() -> None:
    def run(here: Processes) -> list[Any]:
        with pytest.raises(CollectiveError, match=r"process \d runs m\d where process \d runs m\d"):
            here.gathered(f"m{here.number}", [], [0, 1], [()])
        return here.gathered("both", [], [0, 1], [()])  # and goes on

    assert [done.result() for done in in_each(2, run)] == [[(), ()]] * 2


def test_a_process_that_ended_or_is_late_is_named() -> None:
    met = threading.Barrier(2)

    def run(here: Processes) -> None:
        met.wait()
        if here.number == 0:
            here.leave()
        else:
            with pytest.raises(DeviceError, match="process 0 ended"):
                here.gathered("m", [], [0, 1], [()])
        met.wait()

    def late(here: Processes) -> None:
        if here.number:
            hasty = Processes(1, here.devices, 0.0, here.connections)
            with pytest.raises(CollectiveError, match="no answer of process 0 in 0 s"):
                hasty.gathered("m", [], [0, 1], [()])
        met.wait()

    for function in (run, late):
        for done in in_each(2, function):
            done.result()


def test_processes_are_those_of_one_machine() -> None:
    store = Shared()
    far = {"machine": "elsewhere", "devices": 1, "address": ["127.0.0.1", 1]}
    store.put("c/1", json.dumps(far).encode())
    with pytest.raises(
        Unsupported, match="process 1 runs on elsewhere, this one on .* one machine"
    ):
        joined({"node_id": 0, "num_nodes": 2}, store, 1, "c")


def test_a_store_of_c_functions() -> None:
    """A key-value store of a client's C functions keeps values; a failure keeps its code and
    text."""
    plugin, kept, held = Plugin(), {b"a": b"one\0two"}, []
    error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)

    def named(args: Any) -> bytes:
        assert args.user_arg == 7
        return ctypes.string_at(args.key, args.key_size)

    def get(address: int) -> int | None:
        args = structure("KeyValueGetCallback_Args").from_address(address)
        value = kept.get(named(args))
        if value is None:
            text = f"none in {args.timeout_in_ms} ms".encode()
            return error(args.callback_error)(4, text, len(text))
        held.append(ctypes.create_string_buffer(value))
        args.give(value=ctypes.addressof(held[-1]), value_size=len(value))
        args.give(value_deleter_callback=ctypes.cast(delete, ctypes.c_void_p).value)
        return None

    def put(address: int) -> None:
        args = structure("KeyValuePutCallback_Args").from_address(address)
        kept[named(args)] = ctypes.string_at(args.value, args.value_size)

    callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: held.clear())
    functions = {"get": callback(get), "put": callback(put)}
    args = structure("Client_Create")()
    for name, function in functions.items():
        place = ctypes.cast(function, ctypes.c_void_p).value
        args.give(**{f"kv_{name}_callback": place, f"kv_{name}_user_arg": 7})
    store = KeyValueStore(plugin, args)
    store.put("b", b"\0\1")
    assert (store.get("a", 1), store.get("b", 1), held) == (b"one\0two", b"\0\1", [])
    before = len(plugin.handles)
    with pytest.raises(Failed, match="none in 250 ms") as raised:
        store.get("c", 0.25)
    assert raised.value.code == 4 and len(plugin.handles) == before


@pytest.mark.skipif(not has_c_compiler(), reason="compiles C")
def test_jax_runs_in_two_processes() -> None:
    pytest.importorskip("jax")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    platform = {
        "JAX_PLATFORMS": "hlo_oracle",
        "HLO_ORACLE_MODE": "exact",
        "HLO_ORACLE_DEVICES": "2",
        "OMP_WAIT_POLICY": "passive",
        "PYTHONPATH": str(ROOT),
    }
    started = [
        subprocess.Popen(
            [sys.executable, str(SESSION), port, str(number)],
            env={**os.environ, **platform},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    try:
        for process in started:
            told, faults = process.communicate(timeout=300)
            assert process.returncode == 0 and told == "all holds\n", faults
    finally:
        for process in started:
            process.kill()
