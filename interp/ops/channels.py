"""Evaluate send and recv: transfers between ranks through channels, first in, first out.

Pairs of sender and receiver are in ``_xla_send_recv_source_target_pairs`` of the frontend
attributes, as of collective-permute: a rank without a sender receives zeros. Without them one rank
sends and one receives. Only ``recv-done`` waits: a value that is sent and never received is an
error at the end. Host transfers are between a rank and the caller
(:mod:`interp.ops.host_transfers`).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import partial

import numpy as np

from hlo.errors import CollectiveError
from hlo.text.replica_groups import send_recv_pairs
from hlo.types import Shape, TupleShape
from hlo.values import Array
from interp.feeds import HostItems
from interp.ops.host_transfers import host_items, send_to_host
from interp.parcels import Channel, Parcel, Place
from interp.ranks import Rank, Wait, current
from interp.values import Value, conforms, described, zeros

__all__ = ["recv", "recv_done", "send", "send_done"]


@dataclass(frozen=True, slots=True)
class _Reception:
    """A pending ``recv``: it will get the ``number``-th value of a channel, or of the host; zeros
    if ``channel`` is None."""

    channel: Channel | HostItems | None
    number: int
    shape: Shape
    place: Place


def _ends(rank: Rank, channel_id: int | None, attributes: str) -> list[tuple[int, int]] | None:
    """List the (source, target) pairs as rank numbers, in this rank's replica or partition; None if
    the attributes have no pairs."""
    try:
        pairs = send_recv_pairs(attributes)
    except ValueError as error:
        raise CollectiveError(f"_xla_send_recv_source_target_pairs: {error}") from error
    if pairs is None:
        return None
    if not pairs:
        return []
    among = rank.among_partitions if channel_id is not None else rank.among_replicas
    sources, targets = (among(ids) for ids in zip(*pairs, strict=True))
    return list(zip(sources, targets, strict=True))


def _channels(rank: Rank, channel_id: int | None, attributes: str, end: int) -> list[Channel]:
    """List the channels of which this rank is the source (``end`` 0) or the target (1)."""
    known = rank.ranks.channels
    ends = _ends(rank, channel_id, attributes)
    if ends is None:
        return [known[channel_id]]
    return [known[channel_id, pair] for pair in ends if pair[end] == rank.number]


def _named(channel_id: int | None) -> str:
    return "the channel without an id" if channel_id is None else f"channel {channel_id}"


def _only(members: set[int], what: str, channel_id: int | None) -> None:
    if len(members) > 1:
        numbers = ", ".join(map(str, sorted(members)))
        raise CollectiveError(
            f"ranks {numbers} all {what} {_named(channel_id)}, which has no"
            " _xla_send_recv_source_target_pairs to say who is with whom"
        )


def send(
    operand: Array,
    token: Value,
    *,
    channel_id: int | None = None,
    is_host_transfer: bool = False,
    frontend_attributes: str = "",
) -> Value:
    """Send without waiting; return (operand, context, token)."""
    del token
    if is_host_transfer:
        send_to_host(operand, channel_id or 0)
        return operand, np.zeros((), np.uint32), None
    rank = current()
    for channel in _channels(rank, channel_id, frontend_attributes, 0):
        channel.send(Parcel(operand, rank, rank.place))
        _only(channel.senders, "send through", channel_id)
    return operand, np.zeros((), np.uint32), None


def send_done(
    operand: Value, *, channel_id: int | None = None, is_host_transfer: bool = False
) -> Value:
    """Return a token at once. A value that nobody receives is an error at the end of the run."""
    del operand, channel_id, is_host_transfer


def recv(
    token: Value,
    *,
    shape: Shape,
    channel_id: int | None = None,
    is_host_transfer: bool = False,
    frontend_attributes: str = "",
) -> Value:
    """Begin a reception; return (zeros until it is done, its number as context, token)."""
    del token
    assert isinstance(shape, TupleShape)
    rank, wanted = current(), shape.elements[0]
    if is_host_transfer:
        items = host_items(wanted, channel_id or 0)
        reception = _Reception(items, items.next_receiver(), wanted, rank.place)
    else:
        reception = _from_rank(rank, wanted, channel_id, frontend_attributes)
    # A number, as it is data: the context goes through tuples and loops on its way to recv-done.
    number = rank.begin_reception(reception)
    return zeros(wanted), np.asarray(number, np.uint32), None


def _from_rank(rank: Rank, wanted: Shape, channel_id: int | None, attributes: str) -> _Reception:
    channels = _channels(rank, channel_id, attributes, 1)
    if len(channels) > 1:
        raise CollectiveError(f"several ranks send to {rank} through {_named(channel_id)}")
    for channel in channels:
        number = channel.begin_reception(rank)
        _only(channel.receivers, "receive from", channel_id)
        return _Reception(channel, number, wanted, rank.place)
    return _Reception(None, 0, wanted, rank.place)


def recv_done(
    operand: Value, *, channel_id: int | None = None, is_host_transfer: bool = False
) -> Value:
    """Wait for the value of a ``recv``; return (value, token)."""
    del is_host_transfer
    rank = current()
    reception = rank.end_reception(int(operand[1]))
    if reception is None:
        raise CollectiveError(f"{rank}: no recv is under way that this would end")
    channel = reception.channel
    if channel is None:
        return operand[0], None
    if isinstance(channel, HostItems):
        return channel.item(reception.number, reception.shape, channel_id or 0), None
    has_come = partial(operator.contains, channel.waiting, reception.number)
    rank.wait(Wait(has_come, lambda: f"a send through {_named(channel_id)}"))
    parcel = channel.waiting.pop(reception.number)
    if not conforms(parcel.value, reception.shape):
        raise CollectiveError(
            f"{parcel.source} sends {described(parcel.value)} at {parcel.place}, and {rank}"
            f" receives {reception.shape} at {reception.place}"
        )
    return parcel.value, None
