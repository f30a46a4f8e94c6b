"""New memory of the processes that compilers run in has no values of before."""

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

import hlo
from fuzz.peers.unwritten_memory import fill_unwritten_memory
from fuzz.peers.xla import XLA
from fuzz.worker_pool import Result, WorkerPool

_SIZES = (96, 5000)


class _Filled:
    """Open a function that says what new memory of some sizes holds, after such was written and
    freed."""

    def __enter__(self) -> Callable[[], list[bytes]]:
        is_filled = fill_unwritten_memory()
        libc = ctypes.CDLL(None)
        allocate, free = libc.aligned_alloc, libc.free
        allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t] * 2
        free.argtypes = [ctypes.c_void_p]

        def new_memory() -> list[bytes]:
            found = []
            for size in _SIZES * 3:
                address = allocate(32, size)
                found.append(ctypes.string_at(address, size))
                ctypes.memset(address, 1, size)
                free(address)
            return found if is_filled else []

        return new_memory

    def __exit__(self, *_: object) -> None: ...


def test_new_memory_is_filled_with_one_large_number() -> None:
    with WorkerPool(_Filled, seconds=60) as pool:
        outcome = pool()
    assert isinstance(outcome, Result)
    found = outcome.value
    if not found:
        pytest.skip("the C library is not glibc")
    assert found == [b"\x5c" * size for size in _SIZES * 3]
    assert np.frombuffer(found[0], np.float32)[0] > 1e17


def test_what_xla_never_writes_is_no_right_result() -> None:
    """XLA writes one row of three: the others had what was there before, if not filled."""
    text = hlo.format(
        hlo.parse("""HloModule m
ENTRY e {
  x = f32[3,2,4] parameter(0)
  ROOT r = (f32[3,2,1], s32[3,2,1]) custom-call(x), custom_call_target="TopK"
}
""")
    )
    x = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    with XLA() as peer:
        first, *others = (peer(text, [x]).outputs or () for _ in range(3))
    if (first[0] == x.max(-1, keepdims=True)).all():
        pytest.skip("this jaxlib writes all of it")
    assert all((other[1] == first[1]).all() for other in others)
