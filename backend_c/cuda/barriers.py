"""Insert barriers where threads of a block would race.

Two accesses to one array need a barrier between them if one of them writes, unless the same thread
makes both: a loop shared by the threads gives index i to thread i modulo their number, each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from backend_c.cuda.walks import declared, pointed, reads
from backend_c.ir.loop_ir import (
    Apply,
    Assign,
    Barrier,
    Expr,
    If,
    Loop,
    Statement,
    Store,
    every,
    subexpressions,
)

BARRIER = Barrier()
BLOCK = "block-"  # begins the name of what all threads do together, with a barrier at the end


class _Access(NamedTuple):
    """Describe an access to an array since the last barrier.

    ``who`` is "own" (the thread of that index), "first" (thread 0) or "any".
    """

    array: str
    is_write: bool
    who: str


_Since = frozenset[_Access]


@dataclass(frozen=True)
class Barriers:
    """Insert barriers into the statements of a kernel.

    ``tracked`` names the arrays that are written, ``shared`` those in shared memory.
    """

    tracked: frozenset[str]
    shared: frozenset[str]

    def in_rows(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Return the body of a loop over blocks, with barriers.

        Its iterations are independent, but a block's shared memory is still that of the last one.
        """
        before = frozenset(a for a in self._all(body) if a.array in self.shared)
        return self._placed(body, before)[0]

    def in_block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Return the body of a kernel of one block, with barriers."""
        return self._placed(body, frozenset())[0]

    def _placed(
        self, statements: Sequence[Statement], since: _Since
    ) -> tuple[tuple[Statement, ...], _Since]:
        """Insert barriers between statements; return them with the accesses since the last
        barrier."""
        found: list[Statement] = []
        for statement in statements:
            if _conflict(since, frozenset(self._own(statement))):
                found.append(BARRIER)
                since = frozenset()
            statement, since = self._within(statement, since)
            found.append(statement)
        return tuple(found), since

    def _within(self, statement: Statement, since: _Since) -> tuple[Statement, _Since]:
        """Insert barriers inside a statement; return it with the accesses since the last
        barrier."""
        since |= frozenset(self._own(statement))
        match statement:
            case Loop() if statement.kind == "serial":
                # What the end of an iteration accesses, the next one meets.
                body, after = self._placed(statement.body, since | self._all(statement.body))
                return statement._replace(body=body), since | after
            case If(_, then, otherwise) if not is_of_first(statement):
                (one, left), (other, right) = (self._placed(s, since) for s in (then, otherwise))
                return If(statement.condition, one, other), left | right
            case Assign(_, Apply(_, (_, Apply(name)))) if name.startswith(BLOCK):
                return statement, frozenset()
            case _:
                return statement, since

    def _all(self, statements: Sequence[Statement]) -> _Since:
        """Return the accesses of statements and of those inside them."""
        found: set[_Access] = set()
        for statement in statements:
            found.update(self._own(statement))
            match statement:
                case Loop() if statement.kind == "serial":
                    found |= self._all(statement.body)
                case If(_, then, otherwise) if not is_of_first(statement):
                    found |= self._all((*then, *otherwise))
                case _:
                    pass
        return frozenset(found)

    def _own(self, statement: Statement) -> Iterator[_Access]:
        """Yield the accesses of a statement itself: all of one into which no barrier may go."""
        match statement:
            case Loop() if statement.kind == "lanes":
                own = {declared(one) for one in every(statement.body)}
                yield from (_Access(a.name, False, "any") for a, _ in reads(statement))
                for access in self._of_threads(statement):
                    if access.array not in own and access.array in self.tracked:
                        yield access
            case If(_, then, _) if is_of_first(statement):
                for one in then:
                    yield from self._tracked((a.name, False, "first") for a, _ in reads(one))
                    if isinstance(one, Store):
                        yield from self._tracked([(one.array.name, True, "first")])
            case _:
                yield from self._tracked((a.name, False, "any") for a, _ in reads(statement))

    def _tracked(self, accesses: Iterator[tuple[str, bool, str]] | list[tuple[str, bool, str]]
                 ) -> Iterator[_Access]:  # fmt: skip
        yield from (_Access(*access) for access in accesses if access[0] in self.tracked)

    def _of_threads(self, loop: Loop) -> Iterator[_Access]:
        """Yield the accesses in a loop whose iterations are distributed over the threads."""

        def who(offset: Expr) -> str:
            return "own" if offset == loop.variable else "any"

        for statement in every(loop.body):
            yield from (_Access(a.name, False, who(offset)) for a, offset in reads(statement))
            if isinstance(statement, Store):
                yield _Access(statement.array.name, True, who(statement.offset))
            for pointer, is_write in pointed(statement):
                yield _Access(pointer.array.name, is_write, "any")


def is_of_first(statement: If) -> bool:
    """Return whether a branch is run by thread 0 only."""
    parts = subexpressions(statement.condition)
    return any(isinstance(part, Apply) and part.operation == "thread" for part in parts)


def _conflict(one: _Since, other: _Since) -> bool:
    """Return whether accesses of one set race with those of another, without a barrier between."""
    return any(
        a.array == b.array and (a.is_write or b.is_write) and (a.who != b.who or a.who == "any")
        for a in one
        for b in other
    )
