"""Threads of simulated ranks, and what they cost."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest
from rank_programs import f32, run

import hlo
import interp
from interp.parcels import Channel, Parcel, Place
from interp.ranks import Ranks


def test_a_thread_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def refused(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(hlo.Unsupported, match="4 ranks take a thread each: can't start"):
        run("p = f32[2] parameter(0)\nr = f32[2] negate(p)", f32(*[[1, 2]] * 4), replicas=4)
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


def test_ranks_see_the_context_of_the_caller() -> None:
    seen = ContextVar("seen", default="nothing")
    found: list[str] = []

    def told(operands: tuple[Any, ...], shape: object, config: str) -> Any:
        found.append(seen.get())
        return operands[0]

    module = hlo.parse(
        """HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  ROOT r = f32[2] custom-call(p), custom_call_target="told"
}
"""
    )
    token = seen.set("the caller's")
    interp.evaluate(
        module, *[(np.ones(2, np.float32),)] * 2, replicas=2, custom_calls={"told": told}
    )
    seen.reset(token)
    assert found == ["the caller's"] * 2


def test_places_are_formatted_for_messages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """To find a line takes time that grows with the text, and loops meet at each trip."""

    def refused(place: Place) -> str:
        raise AssertionError(f"the line of {place.instruction} is asked for")

    monkeypatch.setattr(Place, "__str__", refused)
    body = "p = f32[2] parameter(0)\nr = f32[2] all-reduce(p), to_apply=add"
    results = run(body, f32([1, 2], [3, 4]), replicas=2)
    assert [result.tolist() for result in results] == [[4, 6]] * 2


def test_channels_keep_only_what_is_under_way() -> None:
    ranks = Ranks(hlo.Module("", (), ""), 2, 1)
    sender, receiver = ranks.members
    channel = Channel()
    for trip in range(1, 4):
        channel.send(Parcel(np.ones(2), sender, sender.place))
        assert channel.begin_reception(receiver) == trip
        assert channel.waiting.pop(trip).source is sender
    assert (channel.senders, channel.receivers, channel.waiting) == ({0}, {1}, {})
