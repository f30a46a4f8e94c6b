"""Pages of results that died are used again; arrays that live never share them."""

from __future__ import annotations

import gc
import threading
from itertools import combinations

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backend_c.native.recycled_memory import SMALLEST, Array, Pool

_BYTES = np.dtype(np.uint8)
_SIZES = st.integers(SMALLEST - 1, SMALLEST + SMALLEST // 2)


def _empty(pool: Pool, size: int) -> Array:
    return pool.empty((size,), _BYTES, size)


@given(steps=st.lists(st.tuples(_SIZES, st.integers(0, 5), st.booleans()), max_size=12))
def test_arrays_that_live_share_no_memory(steps: list[tuple[int, int, bool]]) -> None:
    """Arrays that are alive share no memory, in any order of births and deaths, views among them,
    and the pool keeps no more than its maximum."""
    pool = Pool(maximum=4 * SMALLEST)
    live = dict[int, tuple[Array, int]]()
    for number, (size, place, is_view) in enumerate(steps):
        array = _empty(pool, size)
        array[:: 1 << 12] = number
        live[place] = (array[1 << 12 :] if is_view else array), number
        del array
        for one, other in combinations([array for array, _ in live.values()], 2):
            assert not np.may_share_memory(one, other)
        assert all((array[:: 1 << 12] == number).all() for array, number in live.values())
        assert pool.kept <= 4 * SMALLEST


def test_memory_is_used_again() -> None:
    pool = Pool()
    first = _empty(pool, SMALLEST)
    address = first.ctypes.data
    view = first[5:]
    del first
    assert pool.kept == 0  # the view lives
    del view
    assert pool.kept == SMALLEST
    again = _empty(pool, SMALLEST - 0)
    assert (again.ctypes.data, pool.kept) == (address, 0)


def test_memory_is_aligned_and_of_every_type() -> None:
    for dtype in (np.dtype(np.complex128), np.dtype(ml_dtypes.bfloat16), np.dtype(bool)):
        array = Pool().empty((1 << 20, 5), dtype, (5 << 20) * dtype.itemsize)
        assert (array.dtype, array.shape) == (dtype, (1 << 20, 5))
        assert array.flags.carray
        assert array.ctypes.data % 64 == 0


def test_nothing_is_kept_where_that_is_turned_off() -> None:
    pool = Pool()
    array = _empty(pool, SMALLEST)
    del array
    assert pool.kept
    pool.limit(0)
    assert pool.kept == 0
    before, array = _empty(pool, SMALLEST), _empty(pool, SMALLEST)
    assert array.base is None
    del before, array
    assert pool.kept == 0


def test_blocks_much_larger_than_asked_are_left() -> None:
    pool = Pool()
    array = _empty(pool, 2 * SMALLEST)
    del array
    small = _empty(pool, SMALLEST)
    assert (small.size, pool.kept) == (SMALLEST, 2 * SMALLEST)


def test_threads_never_get_the_same_memory() -> None:
    pool = Pool(maximum=3 * SMALLEST)
    wrong = list[int]()

    def work(number: int) -> None:
        for _ in range(60):
            array = _empty(pool, SMALLEST)
            array[:: 1 << 16] = number
            other = _empty(pool, SMALLEST)
            other[:: 1 << 16] = number + 100
            if not (array[:: 1 << 16] == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not wrong
    assert pool.kept <= 3 * SMALLEST
