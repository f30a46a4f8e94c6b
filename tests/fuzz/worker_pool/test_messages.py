"""Messages between processes arrive whole, and in parts that a receiver needs little memory for."""

import multiprocessing
import pickle
from collections.abc import Sequence
from threading import Thread
from typing import Any

import numpy as np
import pytest

from fuzz.worker_pool import messages

_PART = 1 << 20


class _Recording:
    """The end of a connection that keeps the sizes of what is sent."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def send_bytes(self, part: bytes) -> None:
        self.sizes.append(len(part))


@pytest.mark.parametrize("size", [0, 1, _PART - 1, _PART, _PART + 1, 3 * _PART])
def test_no_part_is_larger_than_a_mebibyte(size: int) -> None:
    sent: Any = _Recording()
    messages.send(sent, bytes(size))
    assert sum(sent.sizes) == size
    assert max(sent.sizes) <= _PART
    assert sent.sizes[-1] < _PART  # which ends the message


@pytest.mark.parametrize("lengths", [[0], [1, 2], [5 << 20, 1, 3 << 20], [1 << 22]])
def test_messages_arrive_one_by_one(lengths: Sequence[int]) -> None:
    given = [np.arange(length, dtype=np.uint8) for length in lengths]
    ours, theirs = multiprocessing.Pipe()

    def send_all() -> None:
        for one in given:
            messages.send(theirs, messages.pickled(one))
        theirs.close()

    sender = Thread(target=send_all)
    sender.start()
    for one in given:
        np.testing.assert_array_equal(messages.receive(ours), one)
    sender.join()
    with pytest.raises(EOFError):
        messages.receive(ours)


def test_a_message_whose_last_part_is_empty() -> None:
    padding = next(n for n in range(_PART) if len(pickle.dumps(bytes(_PART - n))) == _PART)
    ours, theirs = multiprocessing.Pipe()
    message = pickle.dumps(bytes(_PART - padding))
    sender = Thread(target=messages.send, args=(theirs, message))
    sender.start()
    assert messages.receive(ours) == bytes(_PART - padding)
    sender.join()
