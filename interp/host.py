"""Values from and to the caller of a run, in the order of the instructions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hlo.errors import ArgumentError
from hlo.types import Shape, TupleShape
from interp.ranks import Ranks, current, per_rank
from interp.values import Value, conforms, copied, described, from_caller

__all__ = ["infeed", "outfeed"]


def connect(ranks: Ranks, infeed: Iterable[Any] | None, outfeed: Any) -> None:
    """Give the ranks their feeds: one of each for a lone rank, else a sequence of one per rank."""
    nothing = (None,) * ranks.size
    lone = ranks.size == 1
    feeds = nothing if infeed is None else (infeed,) if lone else tuple(infeed)
    sinks = nothing if outfeed is None else (outfeed,) if lone else tuple(outfeed)
    per_rank(ranks, feeds, "infeeds")
    per_rank(ranks, sinks, "outfeeds")
    for rank, items, sink in zip(ranks.members, feeds, sinks, strict=True):
        rank.infeed, rank.outfeed = None if items is None else iter(items), sink


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
