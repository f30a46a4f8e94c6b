"""Values from and to the caller of a run, in the order of the instructions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hlo.errors import ArgumentError
from hlo.types import Shape, TupleShape
from interp.ranks import Ranks, current, per_rank
from interp.values import Value, conforms, copied, described, from_caller

__all__ = ["infeed", "outfeed"]


@dataclass(slots=True)
class HostItems:
    """What the host sends through a channel: the n-th that is sent is for the n-th ``recv``."""

    waiting: Iterator[Any]
    taken: list[Value] = field(default_factory=list)
    receivers: int = 0

    def item(self, number: int, wanted: Shape, channel_id: int) -> Value:
        """The value for the ``number``-th ``recv``, which is asked for when it is needed."""
        while len(self.taken) < number:
            for item in self.waiting:
                self.taken.append(from_caller(item))
                break
            else:
                raise ArgumentError(
                    f"{wanted} is to be received from the host, and nothing is left for channel"
                    f" {channel_id}"
                )
        value, self.taken[number - 1] = self.taken[number - 1], None
        if not conforms(value, wanted):
            raise ArgumentError(
                f"{wanted} is to be received from the host, the next item for channel {channel_id}"
                f" is {described(value)}"
            )
        return value


@dataclass(frozen=True, slots=True)
class Feeds:
    """What the caller gives, and takes: each is one for a lone rank, else a sequence of one per
    rank, or None. ``from_host`` are items and ``to_host`` sinks by channel."""

    infeed: Any = None
    outfeed: Any = None
    from_host: Any = None
    to_host: Any = None


def connect(ranks: Ranks, feeds: Feeds) -> None:
    """Give the ranks their feeds."""
    items = _per_rank(ranks, feeds.infeed, "infeeds")
    sinks = _per_rank(ranks, feeds.outfeed, "outfeeds")
    sent = _per_rank(ranks, feeds.from_host, "from_host")
    received = _per_rank(ranks, feeds.to_host, "to_host")
    for number, rank in enumerate(ranks.members):
        rank.infeed = None if items[number] is None else iter(items[number])
        rank.outfeed = sinks[number]
        given = dict(sent[number] or {})
        rank.from_host = {channel: HostItems(iter(queue)) for channel, queue in given.items()}
        rank.to_host = dict(received[number] or {})


def _per_rank(ranks: Ranks, given: Any, what: str) -> tuple[Any, ...]:
    if given is None:
        return (None,) * ranks.size
    return per_rank(ranks, (given,) if ranks.size == 1 else tuple(given), what)


def send_to_host(operand: Value, channel_id: int) -> None:
    """Appends the operand to the caller's ``to_host[channel_id]``."""
    rank = current()
    if channel_id not in rank.to_host:
        raise ArgumentError(
            f"a value is sent to the host: pass to_host={{{channel_id}: []}}, which it is"
            " appended to"
        )
    rank.to_host[channel_id].append(copied(operand))


def host_items(wanted: Shape, channel_id: int) -> HostItems:
    """The caller's ``from_host[channel_id]``."""
    rank = current()
    if channel_id not in rank.from_host:
        raise ArgumentError(
            f"{wanted} is to be received from the host: pass from_host={{{channel_id}: […]}}, its"
            " items in order"
        )
    items: HostItems = rank.from_host[channel_id]
    return items


def infeed(token: Value, *, shape: Shape, infeed_config: str = "") -> Value:
    """(the next item of the caller's infeed, a token)."""
    del token, infeed_config
    assert isinstance(shape, TupleShape)
    wanted, rank = shape.elements[0], current()
    if rank.infeed is None:
        raise ArgumentError(f"{wanted} is to be infed: pass infeed=[…], its items in order")
    for item in rank.infeed:
        value = from_caller(item)
        if not conforms(value, wanted):
            raise ArgumentError(f"{wanted} is to be infed, the next item is {described(value)}")
        return value, None
    raise ArgumentError(f"{wanted} is to be infed, and nothing is left in the infeed")


def outfeed(
    operand: Value, token: Value, *, outfeed_config: str = "", outfeed_shape: str = ""
) -> Value:
    """A token; the operand is appended to the caller's outfeed."""
    del token, outfeed_config, outfeed_shape
    rank = current()
    if rank.outfeed is None:
        raise ArgumentError("a value is outfed: pass outfeed=[], which it is appended to")
    rank.outfeed.append(copied(operand))
