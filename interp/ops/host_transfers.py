"""Exchange values with the caller of a run: infeed, outfeed, and host send and recv."""

from __future__ import annotations

from hlo.errors import ArgumentError
from hlo.types import Shape, TupleShape
from interp.feeds import HostItems
from interp.ranks import current
from interp.values import Value, conforms, copied, described, from_caller

__all__ = ["infeed", "outfeed"]


def send_to_host(operand: Value, channel_id: int) -> None:
    """Append the operand to the caller's ``to_host[channel_id]``."""
    sinks = current().feeds.to_host
    if channel_id not in sinks:
        raise ArgumentError(
            f"a value is sent to the host: pass to_host={{{channel_id}: []}}, which it is"
            " appended to"
        )
    # A copy, which the caller may change while the program goes on.
    sinks[channel_id].append(copied(operand))


def host_items(wanted: Shape, channel_id: int) -> HostItems:
    """Return the caller's ``from_host[channel_id]``."""
    items = current().feeds.from_host
    if channel_id not in items:
        raise ArgumentError(
            f"{wanted} is to be received from the host: pass from_host={{{channel_id}: […]}}, its"
            " items in order"
        )
    return items[channel_id]


def infeed(token: Value, *, shape: Shape, infeed_config: str = "") -> Value:
    """Return (the next item of the caller's infeed, a token)."""
    del token, infeed_config
    assert isinstance(shape, TupleShape)
    wanted, items = shape.elements[0], current().feeds.infeed
    if items is None:
        raise ArgumentError(f"{wanted} is to be infed: pass infeed=[…], its items in order")
    for item in items:
        value = copied(from_caller(item))  # the caller may use its buffer again
        if not conforms(value, wanted):
            raise ArgumentError(f"{wanted} is to be infed, the next item is {described(value)}")
        return value, None
    raise ArgumentError(f"{wanted} is to be infed, and nothing is left in the infeed")


def outfeed(
    operand: Value, token: Value, *, outfeed_config: str = "", outfeed_shape: Shape | None = None
) -> Value:
    """Append the operand to the caller's outfeed; return a token."""
    del token, outfeed_config, outfeed_shape
    sink = current().feeds.outfeed
    if sink is None:
        raise ArgumentError("a value is outfed: pass outfeed=[], which it is appended to")
    sink.append(copied(operand))
