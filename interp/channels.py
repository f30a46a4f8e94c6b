"""From one rank to another, through a channel: what is sent first is received first.

Who sends to whom is in ``_xla_send_recv_source_target_pairs`` of the frontend attributes, as of
collective-permute: a rank that nobody sends to receives zeros. Without them one rank sends and
one receives. Neither ``send`` nor ``recv`` waits; their done instructions do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.errors import CollectiveError, Unsupported
from hlo.ranks import send_recv_pairs
from hlo.types import ArrayShape, Shape, TupleShape
from interp.ranks import Channel, Parcel, Rank, Wait, current
from interp.values import Value, conforms, described

__all__ = ["recv", "recv_done", "send", "send_done"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class _Transfer:
    """One value through a channel, at one of its ends: the ``number``-th. None: nothing comes."""

    channel: Channel | None
    number: int
    shape: Shape | None = None
    name: str = ""


def _ends(rank: Rank, channel_id: int, attributes: str) -> list[tuple[int, int]] | None:
    """The (source, target) ranks that this rank's replica or partition is concerned with."""
    pairs = send_recv_pairs(attributes)
    if pairs is None:
        return None
    if not pairs:
        return []
    among = rank.among_partitions if channel_id else rank.among_replicas
    sources, targets = (among(ids) for ids in zip(*pairs, strict=True))
    return list(zip(sources, targets, strict=True))


def _channels(rank: Rank, channel_id: int, attributes: str, end: int) -> list[Channel]:
    """Those of which this rank is the source (``end`` 0) or the target (1)."""
    known = rank.ranks.channels
    ends = _ends(rank, channel_id, attributes)
    if ends is None:
        return [known[channel_id]]
    return [known[channel_id, pair] for pair in ends if pair[end] == rank.number]


def _begun(rank: Rank, transfers: list[_Transfer]) -> Array:
    """The context in which the done instruction finds them."""
    rank.transfers.append(transfers)
    return np.asarray(len(rank.transfers) - 1, np.uint32)


def _only(members: list[Rank], what: str, channel_id: int) -> None:
    others = {member.number for member in members}
    if len(others) > 1:
        numbers = ", ".join(map(str, sorted(others)))
        raise CollectiveError(
            f"ranks {numbers} all {what} channel {channel_id}, which has no"
            " _xla_send_recv_source_target_pairs to say who is with whom"
        )


def send(
    operand: Array,
    token: Value,
    *,
    channel_id: int = 0,
    is_host_transfer: bool = False,
    frontend_attributes: str = "",
) -> Value:
    """(the operand, a context, a token)."""
    del token
    _between_ranks(is_host_transfer)
    rank = current()
    transfers = []
    for channel in _channels(rank, channel_id, frontend_attributes, 0):
        channel.sent.append(Parcel(operand, rank))
        channel.senders.append(rank)
        _only(channel.senders, "send through", channel_id)
        transfers.append(_Transfer(channel, len(channel.sent)))
    return operand, _begun(rank, transfers), None


def send_done(operand: Value, *, channel_id: int = 0, is_host_transfer: bool = False) -> Value:
    """A token, when the value is received."""
    _between_ranks(is_host_transfer)
    rank = current()
    for transfer in rank.transfers[int(operand[1])]:
        channel, number = transfer.channel, transfer.number
        received = _Count(channel.receivers, number)
        rank.wait(Wait(received, lambda: f"a recv from channel {channel_id}"))


@dataclass(frozen=True, slots=True)
class _Count:
    """Whether a list has become so long."""

    items: list[Any]
    number: int

    def __call__(self) -> bool:
        return len(self.items) >= self.number


def recv(
    token: Value,
    *,
    shape: Shape,
    channel_id: int = 0,
    is_host_transfer: bool = False,
    frontend_attributes: str = "",
) -> Value:
    """(zeros until it is done, a context, a token)."""
    del token
    _between_ranks(is_host_transfer)
    assert isinstance(shape, TupleShape)
    rank, wanted = current(), shape.elements[0]
    channels = _channels(rank, channel_id, frontend_attributes, 1)
    if len(channels) > 1:
        raise CollectiveError(f"several ranks send to {rank} through channel {channel_id}")
    transfer = _Transfer(None, 0, wanted)
    for channel in channels:
        channel.receivers.append(rank)
        _only(channel.receivers, "receive from", channel_id)
        transfer = _Transfer(channel, len(channel.receivers), wanted, rank.place)
    return _zeros(wanted), _begun(rank, [transfer]), None


def _zeros(shape: Shape) -> Array:
    assert isinstance(shape, ArrayShape)
    return np.zeros(shape.dims, shape.element_type.numpy)


def recv_done(operand: Value, *, channel_id: int = 0, is_host_transfer: bool = False) -> Value:
    """(the value, a token), when it is sent."""
    _between_ranks(is_host_transfer)
    rank = current()
    (transfer,) = rank.transfers[int(operand[1])]
    channel, shape = transfer.channel, transfer.shape
    if channel is None:
        return operand[0], None
    awaited = _Count(channel.sent, transfer.number)
    rank.wait(Wait(awaited, lambda: f"a send through channel {channel_id}"))
    parcel = channel.sent[transfer.number - 1]
    if not conforms(parcel.value, shape):
        raise CollectiveError(
            f"{parcel.source} sends {described(parcel.value)} through channel {channel_id} to"
            f" {rank}, which receives {shape} at {transfer.name}"
        )
    value, parcel.value = parcel.value, None
    return value, None


def _between_ranks(is_host_transfer: bool) -> None:
    if is_host_transfer:
        raise Unsupported("a transfer to or from the host: use infeed and outfeed")
