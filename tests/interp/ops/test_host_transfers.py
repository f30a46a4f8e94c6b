"""send and recv with ``is_host_transfer``: queues of the caller, by channel."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import backend_c
import hlo
import interp

ASKS = """ENTRY e {
  p = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true
  sent = token[] send-done(s), channel_id=2, is_host_transfer=true
  a = (f32[2], u32[], token[]) recv(sent), channel_id=3, is_host_transfer=true
  b = (f32[2], u32[], token[]) recv(sent), channel_id=3, is_host_transfer=true
  second = (f32[2], token[]) recv-done(b), channel_id=3, is_host_transfer=true
  first = (f32[2], token[]) recv-done(a), channel_id=3, is_host_transfer=true
  x = f32[2] get-tuple-element(first), index=0
  y = f32[2] get-tuple-element(second), index=0
  ROOT r = f32[2] subtract(x, y)
}
"""
MODULE = hlo.parse(ASKS)


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_the_first_sent_is_for_the_first_recv() -> None:
    out: list[Any] = []
    given = {3: [numbers(5, 7), numbers(1, 1)]}
    result = interp.evaluate(MODULE, numbers(1, 2), from_host=given, to_host={2: out})
    assert result.tolist() == [4, 6]
    assert [array.tolist() for array in out] == [[1, 2]]


def test_the_host_may_answer() -> None:
    """Items are asked for when they are needed, and the argument is not what is sent."""
    out: list[Any] = []
    x = numbers(1, 2)
    answers = (out[0] * factor for factor in (5, 3))
    result = interp.evaluate(MODULE, x, from_host={3: answers}, to_host={2: out})
    assert result.tolist() == [2, 4] and out[0] is not x


def test_the_caller_may_use_a_buffer_again() -> None:
    module = hlo.parse("""HloModule m
ENTRY e {
  t = token[] after-all()
  a = (f32[2], token[]) infeed(t)
  u = token[] get-tuple-element(a), index=1
  b = (f32[2], token[]) infeed(u)
  x = f32[2] get-tuple-element(a), index=0
  y = f32[2] get-tuple-element(b), index=0
  ROOT r = (f32[2], f32[2]) tuple(x, y)
}
""")
    buffer = numbers(0, 0)

    def items() -> Iterator[np.ndarray]:
        for number in range(2):
            buffer[:] = number
            yield buffer

    x, y = interp.evaluate(module, infeed=items())
    assert x.tolist() == [0, 0] and y.tolist() == [1, 1] and not np.shares_memory(y, buffer)


def test_each_rank_has_its_own_queues() -> None:
    outs: list[dict[int, list[Any]]] = [{2: []}, {2: []}]
    given = [{3: [numbers(n, n), numbers(1, 1)]} for n in (5, 7)]
    results = interp.evaluate(
        MODULE, *[(numbers(n, n),) for n in (8, 9)], replicas=2, from_host=given, to_host=outs
    )
    assert [result.tolist() for result in results] == [[4, 4], [6, 6]]
    assert [out[2][0].tolist() for out in outs] == [[8, 8], [9, 9]]
    with pytest.raises(hlo.ArgumentError, match="2 ranks need 2 to_host, 1 are given"):
        interp.evaluate(
            MODULE, *[(numbers(1, 1),)] * 2, replicas=2, from_host=given, to_host=outs[:1]
        )


ONE = numbers(1, 1)


@pytest.mark.parametrize(
    ("feeds", "complaint"),
    [
        ({}, r"%s = send: a value is sent to the host: pass to_host=\{2: \[\]\}"),
        ({"to_host": {2: []}}, r"%a = recv: f32\[2\] is .*: pass from_host=\{3: \[…\]\}"),
        ({"to_host": {2: []}, "from_host": {3: [ONE]}}, "nothing is left for channel 3"),
        (
            {"to_host": {2: []}, "from_host": {3: [ONE, np.zeros(3)]}},
            r"%second = recv-done: .*the next item for channel 3 is float64\[3\]",
        ),
    ],
)
def test_queues_that_do_not_fit(feeds: dict[str, Any], complaint: str) -> None:
    with pytest.raises(hlo.ArgumentError, match=complaint):
        interp.evaluate(MODULE, ONE, **feeds)


def test_generated_c_has_nobody_to_ask() -> None:
    with pytest.raises(hlo.Unsupported, match="send"):
        backend_c.emit(MODULE)
