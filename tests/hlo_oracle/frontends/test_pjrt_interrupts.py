"""Ctrl-C during calls of the plugin: the first is held back, the second cancels and replaces it."""

from __future__ import annotations

import ctypes
import signal

import pytest

from hlo_oracle.frontends.pjrt.interrupts import Interrupts


def test_a_second_interrupt_replaces_the_first() -> None:
    """The first would be raised once more, in the handling of the program's error."""
    inside, held = ctypes.c_int(1), ctypes.c_int(0)
    interrupts = Interrupts(ctypes.addressof(inside), ctypes.addressof(held))

    def program() -> None:
        interrupts.handle(signal.SIGINT, None)
        assert held.value == 1
        with pytest.raises(KeyboardInterrupt):
            interrupts.handle(signal.SIGINT, None)
        assert held.value == 0
        interrupts.handle(signal.SIGINT, None)  # a third one, while the program ends
        assert held.value == 1

    interrupts.during(program)
    held.value = 0
    interrupts.handle(signal.SIGINT, None)  # in a call that is short
    interrupts.handle(signal.SIGINT, None)
    assert held.value == 1
    inside.value = 0
    with pytest.raises(KeyboardInterrupt):
        interrupts.handle(signal.SIGINT, None)
