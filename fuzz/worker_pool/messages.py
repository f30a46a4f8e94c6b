"""Send objects through a connection in parts of bounded size.

``Connection.recv`` reserves memory for all that is still missing each time that a part of a message
arrives. A process that fills new memory (:mod:`fuzz.peers.unwritten_memory`) would fill as much
each time: the square of a message's size, half a minute for one of 130 MB.
"""

from __future__ import annotations

import pickle
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

_PART = 1 << 20  # bytes


def pickled(value: object) -> bytes:
    """Pickle a value for another process."""
    return bytes(ForkingPickler.dumps(value))


def send(connection: Connection, message: bytes) -> None:
    """Send a pickled value. All its parts are full but the last, which may be empty."""
    view = memoryview(message)
    for begin in range(0, len(message) + 1, _PART):
        connection.send_bytes(view[begin : begin + _PART])


def receive(connection: Connection) -> Any:
    """Wait for a value that :func:`send` sends; raise EOFError if the other end is closed."""
    parts = [connection.recv_bytes()]
    while len(parts[-1]) == _PART:
        parts.append(connection.recv_bytes())
    return pickle.loads(b"".join(parts))
