"""Simulate ranks: the replicas and partitions of a program, as coroutines in threads.

Each rank has a thread, but only one runs at a time: it holds the *turn* until it waits for others
or ends; then the next rank in order that can go on takes it. So every run is the same. When no rank
can go on, they are deadlocked: CollectiveError.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hlo.errors import ArgumentError, CollectiveError, Error, Unsupported
from hlo.module import Instruction, Module
from hlo.ranks import declared, knows_ranks
from hlo.replica_groups import Groups
from interp.feeds import Feeds, RankFeeds, feeds_per_rank
from interp.parcels import Channel, Place
from interp.values import Value

V = TypeVar("V")

# A thread for each; the largest machines that programs are made for have a few thousand devices.
MOST_RANKS = 1024
_MOST_NAMED = 8  # ranks that a message names
_NO_FEEDS = Feeds()


class _Stopped(BaseException):
    """Raised in a rank's thread to end it after another rank failed."""


@dataclass(slots=True)
class Wait:
    """The condition that a rank waits for."""

    is_over: Callable[[], bool]
    awaited: Callable[[], str]  # whom or what, for the message of a deadlock


@dataclass(slots=True)
class _Meeting:
    """A rendezvous of a group at one instruction: the members' operands and results."""

    agreement: Mapping[str, str]
    first: Rank
    place: Place
    given: dict[int, Value] = field(default_factory=dict)
    results: dict[int, Value] = field(default_factory=dict)
    is_over: bool = False


class Ranks:
    """All ranks of one run, and their rendezvous."""

    def __init__(
        self, module: Module, replicas: int, partitions: int, feeds: Feeds = _NO_FEEDS
    ) -> None:
        """Raises ArgumentError for fewer than one rank, Unsupported for more than
        ``MOST_RANKS``."""
        self.module, self.replicas, self.partitions = module, replicas, partitions
        if replicas < 1 or partitions < 1:
            raise ArgumentError(f"{replicas} replicas × {partitions} partitions are no ranks")
        self.size = replicas * partitions
        if self.size > MOST_RANKS:
            raise Unsupported(f"{self.size} ranks: at most {MOST_RANKS} are simulated")
        self.members = tuple(
            Rank(self, number, mine) for number, mine in enumerate(feeds_per_rank(feeds, self.size))
        )
        self.channels: dict[object, Channel] = defaultdict(Channel)
        self._meetings: dict[object, _Meeting] = {}
        self._turns = [threading.Semaphore(0) for _ in self.members]
        self._waits: list[Wait | None] = [None] * self.size
        self._ended: set[int] = set()
        self._failed: int | None = None

    def run(self, body: Callable[[Rank], V]) -> list[V]:
        """Run ``body`` on every rank and return the results; the first error of any rank ends all
        of them."""
        if self.size == 1:
            results = [body(self.members[0])]
            self._require_delivered()
            return results
        with ThreadPoolExecutor(self.size) as pool:
            try:
                futures = self._started(pool, body)
                self._turns[0].release()
                self._done(futures)
            finally:
                self._stop()  # also when the caller interrupts
        if self._failed is None:
            self._require_delivered()
            return [future.result() for future in futures]
        error = futures[self._failed].exception()
        assert error is not None
        # A CollectiveError is about several ranks: a deadlock, or a meeting of unlike ones.
        if isinstance(error, Error) and not isinstance(error, CollectiveError):
            raise type(error)(f"{self.members[self._failed]}: {error}") from error
        raise error

    def _started(self, pool: ThreadPoolExecutor, body: Callable[[Rank], V]) -> list[Future[V]]:
        """Start the thread of each rank, in a copy of the caller's context; Unsupported if the
        system has no more of them."""
        try:
            return [
                pool.submit(copy_context().run, self._take_part, rank, body)
                for rank in self.members
            ]
        except RuntimeError as error:
            raise Unsupported(f"{self.size} ranks take a thread each: {error}") from error

    def _done(self, futures: Sequence[Future[V]]) -> None:
        for future in futures:
            future.exception()

    def _take_part(self, rank: Rank, body: Callable[[Rank], V]) -> V:
        self._turns[rank.number].acquire()
        has_ended = False
        try:
            self.check()
            result = body(rank)
            self._ended.add(rank.number)
            self._pass_on(rank)
            has_ended = True
            return result
        finally:
            # In ``finally``, as any exception, KeyboardInterrupt too, must wake the ranks that wait
            # for a turn.
            if not has_ended:
                if self._failed is None:
                    self._failed = rank.number
                self._stop()

    def _require_delivered(self) -> None:
        for channel in self.channels.values():
            if channel.sent > channel.received:
                parcel = channel.waiting[channel.received + 1]
                raise CollectiveError(
                    f"nobody receives what {parcel.source} sends at {parcel.place}"
                )

    def check(self) -> None:
        """Raise ``_Stopped`` if another rank failed."""
        if self._failed is not None:
            raise _Stopped

    def _stop(self) -> None:
        if self._failed is None and len(self._ended) < self.size:
            # The caller was interrupted while ranks wait: none failed, yet all must end.
            self._failed = 0
        if self._failed is not None:
            # All wake at once, the one exception from the turns: each raises at its next `check`.
            for turn in self._turns:
                turn.release()

    def wait(self, rank: Rank, wait: Wait) -> None:
        """Pass the turn on until the condition holds that ``rank`` waits for."""
        if wait.is_over():
            return
        self._waits[rank.number] = wait
        self._pass_on(rank)
        self._turns[rank.number].acquire()
        self.check()
        self._waits[rank.number] = None

    def _pass_on(self, rank: Rank) -> None:
        """Give the turn to the next rank that can run; CollectiveError if none can (deadlock)."""
        for step in range(1, self.size):
            number = (rank.number + step) % self.size
            wait = self._waits[number]
            if number not in self._ended and (wait is None or wait.is_over()):
                self._turns[number].release()
                return
        if len(self._ended) < self.size:
            raise CollectiveError(self._deadlock())

    def _deadlock(self) -> str:
        texts = []
        for rank, wait in zip(self.members, self._waits, strict=True):
            if rank.number not in self._ended and wait is not None:
                texts.append(f"{rank} waits at {rank.place} for {wait.awaited()}")
        if self._ended:
            ended = ", ".join(str(self.members[number]) for number in _few(sorted(self._ended)))
            more = len(self._ended) - _MOST_NAMED
            texts.append(f"ended: {ended}" + (f" and {more} more" if more > 0 else ""))
        more = len(texts) - _MOST_NAMED
        rest = f"; and {more} more" if more > 0 else ""
        return f"deadlock: {'; '.join(_few(texts))}{rest}"

    def meet(
        self,
        rank: Rank,
        group: tuple[int, ...],
        channel: int | None,
        agreement: Mapping[str, str],
        value: Value,
        combine: Callable[[list[Value]], Sequence[Value]],
    ) -> Value:
        """Wait for all members of the group; return the result of ``combine`` for ``rank``.

        Members meet at the same instruction, or at instructions of the same channel, each for the
        n-th time; all must agree on everything in ``agreement``. ``combine`` takes the members'
        values and returns their results, both in the order of the group.
        """
        key = (rank.site(channel), group)
        rank.reached[key] += 1
        name = (key, rank.reached[key])
        meeting = self._meetings.setdefault(name, _Meeting(agreement, rank, rank.place))
        _require_same(meeting, rank, agreement)
        meeting.given[rank.number] = value
        if len(meeting.given) == len(group):
            values = combine([meeting.given[member] for member in group])
            meeting.results = dict(zip(group, values, strict=True))
            meeting.is_over = True
            meeting.given.clear()
        self.wait(rank, Wait(lambda: meeting.is_over, lambda: self._missing(group, meeting)))
        result = meeting.results.pop(rank.number)
        # The last one to leave deletes it: loops would keep a meeting for each of their trips.
        if not meeting.results:
            del self._meetings[name]
        return result

    def _missing(self, group: tuple[int, ...], meeting: _Meeting) -> str:
        missing = [number for number in group if number not in meeting.given]
        return f"{named(missing)} of its group {{{','.join(map(str, _few(group)))}}}"


def _require_same(meeting: _Meeting, rank: Rank, agreement: Mapping[str, str]) -> None:
    for what, ours in agreement.items():
        theirs = meeting.agreement.get(what, "none")
        if ours != theirs:
            raise CollectiveError(
                f"{meeting.first} and {rank} meet with different {what}: {theirs} at"
                f" {meeting.place}, {ours} at {rank.place}"
            )


def _few(items: Sequence[V]) -> Sequence[V]:
    return items[:_MOST_NAMED]


def named(numbers: Sequence[int]) -> str:
    """Format ``rank 3`` or ``ranks 1, 2``."""
    more = len(numbers) - _MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, _few(numbers)))}{rest}"


class Rank:
    """One simulated device: a replica of a partition, and the instruction that it evaluates."""

    def __init__(self, ranks: Ranks, number: int, feeds: RankFeeds) -> None:
        self.ranks, self.number, self.feeds = ranks, number, feeds
        self.replica, self.partition = divmod(number, ranks.partitions)
        self.computation = ""
        self.instruction: Instruction | None = None
        self.reached: Counter[object] = Counter()
        self._begun = 0
        self._receptions: dict[int, Any] = {}  # what it receives, by the number in the context

    def __str__(self) -> str:
        if self.ranks.replicas == 1 or self.ranks.partitions == 1:
            return f"rank {self.number}"
        return f"rank {self.number} (replica {self.replica}, partition {self.partition})"

    def at(self, computation: str, instruction: Instruction) -> None:
        """Record the instruction being evaluated."""
        self.computation, self.instruction = computation, instruction
        self.ranks.check()

    @property
    def place(self) -> Place:
        """Return the current instruction as a place."""
        return Place(self.ranks.module, self.instruction)

    def site(self, channel: int | None) -> object:
        """Return the key of a rendezvous: the channel, else the current instruction."""
        if channel is not None:
            return channel
        return self.computation, "" if self.instruction is None else self.instruction.name

    def wait(self, wait: Wait) -> None:
        self.ranks.wait(self, wait)

    def begin_reception(self, reception: Any) -> int:
        """Store a pending reception; return its number."""
        self._begun += 1
        self._receptions[self._begun] = reception
        return self._begun

    def end_reception(self, number: int) -> Any:
        """Remove and return a pending reception; None if there is none of this number."""
        return self._receptions.pop(number, None)

    # Groups: ids of one kind or another to numbers of ranks

    def among_replicas(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Map replica ids to rank numbers, in this partition (kCrossReplica)."""
        self._exist(ids, self.ranks.replicas, "replica")
        return tuple(id * self.ranks.partitions + self.partition for id in ids)

    def among_partitions(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Map partition ids to rank numbers, in this replica (kCrossPartition)."""
        self._exist(ids, self.ranks.partitions, "partition")
        return tuple(self.replica * self.ranks.partitions + id for id in ids)

    def among_both(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Map replica ids to the rank numbers of all their partitions, replica by replica
        (kCrossReplicaAndPartition)."""
        self._exist(ids, self.ranks.replicas, "replica")
        partitions = range(self.ranks.partitions)
        return tuple(
            id * self.ranks.partitions + partition for id in ids for partition in partitions
        )

    def among_all(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return flattened ids as rank numbers, after a check (kFlattenedID)."""
        self._exist(ids, self.ranks.size, "rank")
        return tuple(ids)

    def _exist(self, ids: Sequence[int], count: int, what: str) -> None:
        if ids and max(ids) >= count:
            raise CollectiveError(
                f"{self}: a group has {what} {max(ids)}, and there {'is' if count == 1 else 'are'}"
                f" {count}: run it on as many {what}s as it is made for"
            )

    def group(
        self, groups: Groups, among: Callable[[Rank, Sequence[int]], tuple[int, ...]]
    ) -> tuple[int, ...] | None:
        """Find the group of this rank, in order; None if no group has it. Without groups, all ids
        form one."""
        if not groups:
            limits: dict[object, int] = {
                Rank.among_partitions: self.ranks.partitions,
                Rank.among_all: self.ranks.size,
            }
            groups = (tuple(range(limits.get(among, self.ranks.replicas))),)
        for ids in groups:
            members = among(self, ids)
            if self.number in members:
                return members
        return None


def ranks_of(module: Module, replicas: int, partitions: int, feeds: Feeds = _NO_FEEDS) -> Ranks:
    """Make the ranks of a run; ArgumentError if the module declares other numbers of them.

    A module that never asks for its rank may run on a single one, whatever it declares.
    """
    made_for = declared(module)
    if made_for != (replicas, partitions) and made_for != (1, 1):
        lone = (replicas, partitions) == (1, 1)
        if not lone or knows_ranks(module):
            raise ArgumentError(
                f"the module is made for replicas={made_for[0]}, partitions={made_for[1]}, not for"
                f" replicas={replicas}, partitions={partitions}"
            )
    return Ranks(module, replicas, partitions, feeds)


_CURRENT: ContextVar[Rank] = ContextVar("rank")


@contextmanager
def running(rank: Rank) -> Iterator[None]:
    """Make ``rank`` the current one within a block."""
    token = _CURRENT.set(rank)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Rank:
    """Return the rank that is being evaluated; outside of :func:`running` a single one."""
    rank = _CURRENT.get(None)
    return Ranks(Module("", (), ""), 1, 1).members[0] if rank is None else rank
