"""Connect ranks to the caller of a run: infeed, outfeed, and host transfers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from hlo.errors import ArgumentError
from hlo.types import Shape
from interp.values import Value, conforms, copied, described, from_caller


class Outfeed(Protocol):
    """A sink for outfed values: a list, a deque, anything with ``append``."""

    def append(self, item: Any, /) -> None: ...


@dataclass(slots=True)
class HostItems:
    """The queue of one channel from the host: the n-th item is for the n-th ``recv``."""

    waiting: Iterator[Any]
    taken: list[Value] = field(default_factory=list)
    receivers: int = 0

    def next_receiver(self) -> int:
        """Number one more ``recv``, from 1."""
        self.receivers += 1
        return self.receivers

    def item(self, number: int, wanted: Shape, channel_id: int) -> Value:
        """Return the value for the ``number``-th ``recv``, taking items from the caller only as
        needed. ArgumentError if there is none, or not of the ``wanted`` shape."""
        while len(self.taken) < number:
            for item in self.waiting:
                self.taken.append(copied(from_caller(item)))
                break
            else:
                raise ArgumentError(
                    f"{wanted} is to be received from the host, and nothing is left for channel"
                    f" {channel_id}"
                )
        # Receptions may end in another order than they began, so places stay, values do not.
        value, self.taken[number - 1] = self.taken[number - 1], None
        if not conforms(value, wanted):
            raise ArgumentError(
                f"{wanted} is to be received from the host, the next item for channel {channel_id}"
                f" is {described(value)}"
            )
        return value


@dataclass(frozen=True, slots=True)
class Feeds:
    """Feeds of a run as the caller gives them: one of each for a lone rank, a sequence of one per
    rank for several, or None. ``from_host`` maps channels to items, ``to_host`` channels to
    sinks."""

    infeed: Any = None
    outfeed: Any = None
    from_host: Any = None
    to_host: Any = None


@dataclass(frozen=True, slots=True)
class RankFeeds:
    """The feeds of one rank; ``infeed`` and ``outfeed`` are None where the caller gives none."""

    infeed: Iterator[Any] | None
    outfeed: Outfeed | None
    from_host: Mapping[int, HostItems]  # by channel
    to_host: Mapping[int, Outfeed]


def feeds_per_rank(feeds: Feeds, size: int) -> tuple[RankFeeds, ...]:
    """Distribute the feeds of a run to ``size`` ranks; ArgumentError if their number differs."""
    each = zip(
        _each(size, feeds.infeed, "infeeds"),
        _each(size, feeds.outfeed, "outfeeds"),
        _each(size, feeds.from_host, "from_host"),
        _each(size, feeds.to_host, "to_host"),
        strict=True,
    )
    return tuple(
        RankFeeds(
            None if items is None else iter(items),
            sink,
            {channel: HostItems(iter(queue)) for channel, queue in dict(sent or {}).items()},
            dict(received or {}),
        )
        for items, sink, sent, received in each
    )


def _each(size: int, given: Any, what: str) -> tuple[Any, ...]:
    if given is None:
        return (None,) * size
    return per_rank(size, (given,) if size == 1 else tuple(given), what)


def per_rank(size: int, values: Iterable[Any], what: str) -> tuple[Any, ...]:
    """Return the values as a tuple of one per rank; ArgumentError if their number differs."""
    found = tuple(values)
    if len(found) != size:
        raise ArgumentError(f"{size} ranks need {size} {what}, {len(found)} are given")
    return found
