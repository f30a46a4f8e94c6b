"""Connect the processes of one client (``jax.distributed``) on one machine.

They find each other by the client's key-value store, and are connected in pairs on the loopback
interface, authenticated by a random key of the store; messages are bytes of arrays, never pickled
objects. A program whose ranks exchange values runs in each process, on the arguments of all of its
ranks, which the processes give to each other first; evaluation is exact, so that all of them
compute the same bits, and each keeps the results of its own devices.
"""

from __future__ import annotations

import json
import platform
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Protocol

import numpy as np

from hlo.errors import CollectiveError, DeviceError, Unsupported
from hlo.types import ArrayShape
from hlo.values import Array
from hlo_oracle.frontends.pjrt.foreign_memory import NamedValue

_SECONDS = 600.0  # that another process may take until it runs the same program
_LOOPBACK = "127.0.0.1"
Row = tuple[Array | None, ...]  # a rank's arguments; None for a token


class Store(Protocol):
    """A key-value store that all processes can access."""

    def get(self, key: str, seconds: float) -> bytes: ...
    def put(self, key: str, value: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a client: ``devices`` has the number of devices of each, this one is
    ``number``."""

    number: int
    devices: tuple[int, ...]
    seconds: float = _SECONDS
    connections: Mapping[int, Connection] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def gathered(
        self,
        program: str,
        shapes: Sequence[ArrayShape],
        owners: Sequence[int],
        mine: Sequence[Row],
    ) -> list[Row]:
        """Gather the arguments of all ranks of a program; ``owners`` has the process of each rank.

        Raises CollectiveError if another process runs another program, or none in time, and
        DeviceError if it ended.
        """
        others = sorted(set(owners) - {self.number})
        sent = [array.tobytes() for row in mine for array in row if array is not None]
        arrays = sum(shape.element_type.is_array for shape in shapes)
        with self.lock:
            # Names come first: the arguments of another program would be taken for those of this
            # one.
            told = {other: self._exchanged(other, [program.encode()], 1) for other in others}
            for other, (theirs,) in told.items():
                if theirs != program.encode():
                    raise CollectiveError(
                        f"process {other} runs {theirs.decode('utf-8', 'replace')} where process"
                        f" {self.number} runs {program}: programs on devices of several processes"
                        " have to run in the same order in each"
                    )
            found = {
                other: iter(self._exchanged(other, sent, arrays * owners.count(other)))
                for other in others
            }
        own = iter(mine)
        return [
            next(own) if owner == self.number else _row(shapes, found[owner]) for owner in owners
        ]

    def leave(self) -> None:
        """Close all connections."""
        for connection in self.connections.values():
            connection.close()

    def _exchanged(self, other: int, sent: Sequence[bytes], count: int) -> list[bytes]:
        """Send messages to another process and receive ``count``.

        The process with the lower number sends first, and each process meets the others in
        ascending order, so that no cycle of processes waits for each other.
        """
        connection, received = self.connections[other], []
        try:
            for is_sending in (self.number < other, self.number > other):
                if is_sending:
                    for message in sent:
                        connection.send_bytes(message)
                else:
                    received = [self._received(other) for _ in range(count)]
        except (EOFError, OSError) as error:
            raise DeviceError(f"process {other} ended, or its connection: {error!r}") from error
        return received

    def _received(self, other: int) -> bytes:
        """Receive a message, waiting in steps so that Ctrl-C is handled."""
        end = time.monotonic() + self.seconds
        while not self.connections[other].poll(0.5):
            if time.monotonic() > end:
                raise CollectiveError(
                    f"no answer of process {other} in {self.seconds:.0f} s: a program on devices of"
                    " several processes has to run in each of them"
                )
        return self.connections[other].recv_bytes()


def _row(shapes: Sequence[ArrayShape], messages: Iterator[bytes]) -> Row:
    """Decode a rank's arguments from the bytes of their elements."""
    return tuple(
        np.ndarray(shape.dims, shape.element_type.numpy, bytearray(next(messages)))
        if shape.element_type.is_array
        else None
        for shape in shapes
    )


def joined(
    options: Mapping[str, NamedValue], store: Store | None, devices: int, name: str
) -> Processes:
    """Connect the processes of a client (options ``node_id`` and ``num_nodes``), each with its
    number of devices; ``name`` tells several clients of the same processes apart.

    Raises Unsupported without a store, and for processes of several machines.
    """
    number, count = (int(str(options.get(each, default))) for each, default in _COUNTED)
    if count == 1:
        return Processes(0, (devices,))
    if store is None:
        raise Unsupported(f"a client of {count} processes that has no key-value store to meet by")
    if number == 0:
        store.put(f"{name}/key", secrets.token_bytes(32))
    key = store.get(f"{name}/key", _SECONDS)
    # All processes with higher numbers may call before this one accepts, as it calls those with
    # lower numbers first; a listener's default queue has room for one.
    with Listener((_LOOPBACK, 0), backlog=count, authkey=key) as listener:
        here = {"machine": platform.node(), "devices": devices, "address": listener.address}
        store.put(f"{name}/{number}", json.dumps(here).encode())
        told = [json.loads(store.get(f"{name}/{each}", _SECONDS)) for each in range(count)]
        for other, each in enumerate(told):
            if each["machine"] != here["machine"]:
                raise Unsupported(
                    f"process {other} runs on {each['machine']}, this one on {here['machine']}:"
                    " processes of hlo_oracle are those of one machine"
                )
        connections = _connected(listener, number, [tuple(each["address"]) for each in told], key)
    return Processes(number, tuple(each["devices"] for each in told), connections=connections)


_COUNTED = (("node_id", 0), ("num_nodes", 1))


def _connected(
    listener: Listener, number: int, addresses: Sequence[tuple[str, int]], key: bytes
) -> dict[int, Connection]:
    """Connect to the processes with lower numbers, and accept connections of those with higher
    ones."""
    connections = {}
    try:
        for other in range(number):
            connections[other] = Client(addresses[other], authkey=key)
            connections[other].send_bytes(str(number).encode())
        for _ in addresses[number + 1 :]:
            caller = listener.accept()
            connections[int(caller.recv_bytes())] = caller
    except (EOFError, OSError, AuthenticationError) as error:
        raise DeviceError(f"the processes of the client do not meet: {error!r}") from error
    return connections
