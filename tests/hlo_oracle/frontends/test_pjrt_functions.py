"""The functions of the PJRT plugin, called as a client of C calls them, without JAX."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given
from hypothesis import strategies as st

from hlo.types import ELEMENT_TYPES, F32
from hlo_oracle.frontends.pjrt import compile_options, element_types, errors, modes, shim
from hlo_oracle.frontends.pjrt.declarations import declarations, structure
from hlo_oracle.frontends.pjrt.foreign_memory import address_of, array_at
from hlo_oracle.frontends.pjrt.plugin import Plugin
from hlo_oracle.loading.wire_format import message

INVALID_ARGUMENT, UNIMPLEMENTED = 3, 12
COPY, ZERO_COPY = 0, 2  # PJRT_HostBufferSemantics
STRUCT_SIZE = 1144  # of PJRT_Api 0.114
needs_c = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
OnReady = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Client:
    """A client of the plugin in this process: it calls functions by name."""

    def __init__(self, devices: int = 1) -> None:
        self.plugin = Plugin()
        options = self.plugin.kept.named({"devices": devices, "mode": "exact"})
        made = self.call("Client_Create", create_options=options[0], num_options=options[1])
        self.handle = made.client
        self.device = self.call("Client_LookupDevice", client=self.handle, id=0).device

    def call(self, name: str, size: int | None = None, **fields: object) -> Any:
        """Call with these arguments; raise Failed with the error's code and text."""
        args = structure(name)()
        args.give(struct_size=declarations().sizes[name] if size is None else size, **fields)
        error = shim.entry(self.plugin, name)(ctypes.addressof(args))
        if error is not None:
            found = self.plugin.handles.of(error, errors.PjrtError)
            raise errors.Failed(found.code, found.text)
        return args

    def put(self, array: np.ndarray, number: int, semantics: int = COPY) -> Any:
        dims, strides = self.plugin.kept.numbers(array.shape), None
        if not array.flags.c_contiguous:
            strides = self.plugin.kept.numbers(array.strides)
        return self.call(
            "Client_BufferFromHostBuffer",
            client=self.handle,
            data=address_of(array),
            type=number,
            dims=dims[0],
            num_dims=dims[1],
            byte_strides=strides and strides[0],
            num_byte_strides=len(array.shape) if strides else 0,
            host_buffer_semantics=semantics,
            device=self.device,
        )

    def taken(self, buffer: int, like: np.ndarray) -> np.ndarray:
        result = np.empty_like(like, order="C")
        self.call("Buffer_ToHostBuffer", src=buffer, dst=address_of(result), dst_size=result.nbytes)
        return result


def aligned(dims: tuple[int, ...]) -> np.ndarray:
    memory = np.zeros(64 + 4 * int(np.prod(dims)), np.uint8)
    start = -address_of(memory) % 64
    return memory[start : start + 4 * int(np.prod(dims))].view(np.float32).reshape(dims)


def test_sizes_are_those_of_the_header() -> None:
    """The numbers of another reading of pjrt_c_api.h, field by field."""
    theirs = pytest.importorskip("pypjrt._abi.pjrt_0_114")
    known = declarations()
    assert len(known.functions) == len(theirs.SLOT)
    assert [f"PJRT_{name}" for name in known.functions] == list(theirs.SLOT)
    for name, size in known.sizes.items():
        suffix = "_Args" if name in known.names else ""
        other = getattr(theirs, f"PJRT_{name}{suffix}", None)
        if other is None:  # a union has no name there, nor do the first arguments of all
            assert suffix == "" or name == "Plugin_Initialize", name
            continue
        assert size == getattr(theirs, f"PJRT_{name}{suffix}_STRUCT_SIZE", size), name
        ours = structure(name)
        for (field, *_), (their_field, *_) in zip(ours._fields_, other._fields_, strict=True):
            assert getattr(ours, field).offset == getattr(other, their_field).offset, (name, field)


@needs_c
def test_the_library_has_a_table() -> None:
    path = shim.library()
    api = ctypes.CDLL(str(path)).GetPjrtApi
    api.restype = ctypes.POINTER(ctypes.c_size_t)
    words = api()
    assert words[0] == STRUCT_SIZE == (5 + len(declarations().functions)) * 8
    assert words[4] == 114 << 32
    assert all(words[5 : 5 + len(declarations().functions)])


def test_every_function_has_its_slot() -> None:
    known = set(map(shim.snake_case, declarations().names))
    assert shim.functions().keys() <= known


def test_what_is_not_implemented_says_so() -> None:
    with pytest.raises(errors.Failed, match="PJRT_Buffer_Bitcast is not implemented") as raised:
        Client().call("Buffer_Bitcast")
    assert raised.value.code == UNIMPLEMENTED


def test_a_handle_that_was_dropped_is_an_error() -> None:
    client = Client()
    buffer = client.put(np.ones(3, np.float32), element_types.number_of(F32)).buffer
    client.call("Buffer_Destroy", buffer=buffer)
    with pytest.raises(errors.Failed, match="a Buffer is expected") as raised:
        client.call("Buffer_Device", buffer=buffer)
    assert raised.value.code == INVALID_ARGUMENT


@pytest.mark.parametrize("name", [name for name in element_types._NAMES if name != "invalid"])
def test_arrays_of_every_type_come_back(name: str) -> None:
    element, client = ELEMENT_TYPES[name], Client()
    number = element_types.number_of(element)
    assert element_types.element_type(number) is element
    if element.is_array:
        array = np.zeros((2, 3), element.numpy)
        array[1, 2] = 1
        buffer = client.put(array, number).buffer
        assert client.call("Buffer_ElementType", buffer=buffer).type == number
        assert client.taken(buffer, array).tobytes() == array.tobytes()


@given(st.permutations([0, 1, 2]), st.tuples(*[st.integers(0, 4)] * 3), st.booleans())
def test_strides_of_the_host_are_those_of_the_array(
    order: list[int], dims: tuple[int, int, int], is_stepped: bool
) -> None:
    array = np.arange(np.prod(dims), dtype=np.float32).reshape(dims).transpose(order)
    array = array[:, ::2] if is_stepped else array
    client = Client()
    buffer = client.put(array, element_types.number_of(F32)).buffer
    assert np.array_equal(client.taken(buffer, array), array)


@given(st.permutations([0, 1, 2]))
def test_the_host_chooses_a_layout(order: list[int]) -> None:
    client, array = Client(), np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    buffer = client.put(array, element_types.number_of(F32)).buffer
    layout, result = structure("Buffer_MemoryLayout")(), np.empty(24, np.float32)
    place, count = client.plugin.kept.numbers(order[::-1])
    layout.format.tiled.give(minor_to_major=place, minor_to_major_size=count)
    client.call(
        "Buffer_ToHostBuffer",
        src=buffer,
        host_layout=ctypes.addressof(layout),
        dst=address_of(result),
        dst_size=result.nbytes,
    )
    assert np.array_equal(result, array.transpose(order).ravel())


def test_memory_of_the_client_is_used_and_given_back() -> None:
    """Without a copy the event that it may change happens when the buffer is gone."""
    client, array, told = Client(), aligned((4, 4)), []
    made = client.put(array, element_types.number_of(F32), ZERO_COPY)
    pointer = client.call("Buffer_OpaqueDeviceMemoryDataPointer", buffer=made.buffer)
    assert pointer.device_memory_ptr == address_of(array)
    callback = OnReady(lambda error, _: told.append(error))
    place = ctypes.cast(callback, ctypes.c_void_p).value
    client.call("Event_OnReady", event=made.done_with_host_buffer, callback=place)
    client.call("Buffer_IncreaseExternalReferenceCount", buffer=made.buffer)
    client.call("Buffer_Delete", buffer=made.buffer)
    assert not told
    client.call("Buffer_DecreaseExternalReferenceCount", buffer=made.buffer)
    assert told == [None]


def test_a_copy_does_not_change_with_its_source() -> None:
    client, array = Client(), aligned((4, 4))
    made = client.put(array, element_types.number_of(F32))
    assert client.call("Event_IsReady", event=made.done_with_host_buffer).is_ready
    array[:] = 7
    assert not client.taken(made.buffer, array).any()


def test_fields_that_an_older_client_has_not_are_not_written() -> None:
    name = "Executable_GetCompiledMemoryStats"
    known = structure(name)
    args = known()
    args.give(struct_size=known.output_size_in_bytes.offset, total_size_in_bytes=-5)
    with shim._extended(ctypes.addressof(args), declarations().sizes[name]) as own:
        known.from_address(own).give(argument_size_in_bytes=3, total_size_in_bytes=9)
    assert (args.argument_size_in_bytes, args.total_size_in_bytes) == (3, -5)


def test_an_array_is_written_piece_by_piece() -> None:
    client, spec = Client(), structure("ShapeSpec")()
    dims, rank = client.plugin.kept.numbers((4,))
    spec.give(dims=dims, num_dims=rank, element_type=element_types.number_of(F32))
    memory = client.call("Device_DefaultMemory", device=client.device).memory
    manager = client.call(
        "Client_CreateBuffersForAsyncHostToDevice",
        client=client.handle,
        shape_specs=ctypes.addressof(spec),
        num_shape_specs=1,
        memory=memory,
    ).transfer_manager
    managed = "AsyncHostToDeviceTransferManager_"
    buffer = client.call(f"{managed}RetrieveBuffer", transfer_manager=manager).buffer_out
    event = client.call("Buffer_ReadyEvent", buffer=buffer).event
    array = np.arange(4, dtype=np.float32)
    for offset, is_last in ((0, False), (8, True)):
        assert not client.call("Event_IsReady", event=event).is_ready
        client.call(
            f"{managed}TransferData",
            transfer_manager=manager,
            data=address_of(array) + offset,
            offset=offset,
            transfer_size=8,
            is_last_transfer=is_last,
        )
    assert client.call("Event_IsReady", event=event).is_ready
    assert np.array_equal(client.taken(buffer, array), array)


def test_a_defect_becomes_an_error_that_names_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(plugin: Plugin, args: Any) -> None:
        raise ZeroDivisionError("division by zero")

    found: dict[str, Callable[..., None]] = {**shim.functions(), "client_process_index": broken}
    monkeypatch.setattr(shim, "functions", lambda: found)
    client = Client()
    with pytest.raises(errors.Failed, match="a defect of hlo-oracle: ZeroDivisionError") as raised:
        client.call("Client_ProcessIndex", client=client.handle)
    assert "test_pjrt_functions.py" in str(raised.value)


def test_a_lack_of_memory_has_its_code() -> None:
    """Clients make their programs smaller then; our own errors say it in words alone."""
    inner, outer = (errors.errors.Unsupported(f"{place}: no memory") for place in ("add", "loop"))
    inner.__cause__, outer.__cause__ = MemoryError(), inner
    assert [errors.described(one).code for one in (inner, outer)] == [8, 8]
    assert errors.described(outer).text == "loop: no memory"
    assert errors.described(errors.errors.Unsupported("no C for it")).code == UNIMPLEMENTED
    assert errors.described(MemoryError()).code == 8


def test_devices_and_modes_are_asked_for_in_words() -> None:
    with pytest.raises(errors.errors.ArgumentError, match="HLO_ORACLE_DEVICES=many: a number"):
        modes.devices_of({}, {"HLO_ORACLE_DEVICES": "many"})
    with pytest.raises(errors.errors.ArgumentError, match="one of fast, exact, interp, check"):
        modes.mode_of({}, {"HLO_ORACLE_MODE": "quick"})
    assert modes.devices_of({"devices": 3}, {"HLO_ORACLE_DEVICES": "5"}) == 3


def test_one_process_has_all_devices() -> None:
    """jaxlib ends the process if it cannot tell of others."""
    client = Client()
    client.call("Client_UpdateGlobalProcessInfo", client=client.handle)
    options = client.plugin.kept.named({"num_nodes": 2, "node_id": 1})
    with pytest.raises(errors.Failed, match="2 processes that has no key-value store"):
        client.call("Client_Create", create_options=options[0], num_options=options[1])


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_device_assignments_are_read_as_they_are_written(
    replicas: int, partitions: int, data: st.DataObject
) -> None:
    devices = data.draw(st.permutations(range(300 - replicas * partitions, 300)))
    assignment = compile_options.device_assignment(replicas, partitions, devices)
    build = message([(4, replicas), (5, partitions), (9, assignment)])
    read = compile_options.compile_options(message([(3, build)]))
    assert read == compile_options.CompileOptions(replicas, partitions, tuple(devices))


def test_an_array_is_where_it_is() -> None:
    array = np.arange(6, dtype=np.complex128).reshape(2, 3)
    seen = array_at(address_of(array), (3, 2), array.dtype, (16, 48))
    assert np.array_equal(seen, array.T) and np.shares_memory(seen, array)


@needs_c
def test_another_client_finds_nothing_wrong() -> None:
    """The checks of pypjrt's conformance harness: none fails, none finds a function missing."""
    pytest.importorskip("jaxlib")
    conform = pytest.importorskip("pypjrt.conform")
    report = conform.run(conform.Plugin(str(shim.library())))
    wrong = [c for c in report.checks if c.result.value not in ("pass", "skip")]
    assert not wrong
    assert {c.id.partition(".")[0] for c in report.checks if c.result.value == "skip"} <= {
        *("abi", "triton", "stream")
    }


def test_an_executable_of_another_version_is_refused() -> None:
    client = Client()
    here = client.call("Client_RuntimeAbiVersion", client=client.handle).abi_version
    for version, is_ours in ((modes.version_text(), True), ("hlo-oracle 0.0.1", False)):
        platform = client.call("RuntimeAbiVersion_PlatformId", abi_version=here).platform_id
        place, size = client.plugin.kept.text(message([(1, platform), (2, version.encode())]))
        there = client.call(
            "ExecutableAbiVersion_FromProto", serialized_proto=place, serialized_proto_size=size
        ).abi_version
        asked = {"abi_version": here, "executable_abi_version": there}
        if is_ours:
            client.call("RuntimeAbiVersion_IsCompatibleWithExecutable", **asked)
            continue
        with pytest.raises(errors.Failed, match="made by hlo-oracle 0.0.1, and this is"):
            client.call("RuntimeAbiVersion_IsCompatibleWithExecutable", **asked)


def test_nothing_is_left_of_what_was_destroyed() -> None:
    client = Client()
    before = len(client.plugin.handles)
    made = client.put(np.ones(3, np.float32), element_types.number_of(F32))
    layout = client.call("Layouts_PJRT_Buffer_MemoryLayout", buffer=made.buffer).layout
    client.call("Layouts_MemoryLayout_Destroy", layout=layout)
    client.call("Event_Destroy", event=made.done_with_host_buffer)
    client.call("Buffer_Destroy", buffer=made.buffer)
    assert len(client.plugin.handles) == before
