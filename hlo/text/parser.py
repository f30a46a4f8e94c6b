"""Parse HLO text to a Module: plain lines by one regular expression, all else by its brackets.

The grammar is that of XLA's ``hlo_parser.cc``, in the dialects that its printers write. Nearly all
instructions stand on a line of their own without nested brackets; these are split at separators,
and their shapes and tails looked up. All others, and all errors, are read field by field.
"""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hlo.errors import ArgumentError
from hlo.module import Computation, Instruction, Module
from hlo.text.attribute_lists import TailReader
from hlo.text.expressions import ExpressionReader, Known
from hlo.text.module_header import read_header
from hlo.text.patterns import pattern
from hlo.text.plain_lines import LineReader, odd_name
from hlo.text.scanning import KEYWORDS, NAME, Source, plain_name, source_of
from hlo.text.shapes import ShapeReader
from hlo.types import ELEMENT_TYPES, Shape, same_bounds

_MODULE = pattern(rf"HloModule\s++({NAME})", re.ASCII)
_COMPUTATION = pattern(rf"(ENTRY\s++)?+({NAME})\s*+(?=[({{])", re.ASCII)
_ROWS = {
    "FileNames": r"(?:\d++\s*+\"(?:[^\"\\]|\\.)*+\"\s*+)*+",
    "FunctionNames": r"(?:\d++\s*+\"(?:[^\"\\]|\\.)*+\"\s*+)*+",
    "FileLocations": r"(?:\d++\s*+\{[^{}]*+\}\s*+)*+",
    "StackFrames": r"(?:\d++\s*+\{[^{}]*+\}\s*+)*+",
}
_TABLES = [pattern(rf"{name}\b\s*+{rows}", re.ASCII) for name, rows in _ROWS.items()]
_SHAPE = pattern(r"\(|[a-z]\w*+\[", re.ASCII)
_FILE_NAME = pattern(r"[^\s{}()=]++(?:(?<=\.(?:hlo|txt))|(?<=\.mlir)|(?<=\.(?:pb|gz)))\s*+")
_INSTRUCTION = pattern(rf"{_SHAPE.pattern}|(?:ROOT\s++)?+{NAME}\s*+=", re.ASCII)
_MARKED = pattern(r"(?:ROOT\s*+)?+(?:%|[\w.\-]++:)", re.ASCII)  # a name, whatever it is
_ANONYMOUS = "_"  # XLA's name for what has none
_WORDS = KEYWORDS | ELEMENT_TYPES.keys()


def parse(text: str) -> Module:
    """Parse the text of a module; raise ParseError, with its position, where it is not HLO.

    Names are kept, so are attributes of the header, tables of files and frames, and annotations (as
    text). Shapes written beside operands are checked and dropped, comments are dropped. Without a
    header, the module is named for its entry. Raises ArgumentError if ``text`` is not a str.
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"parse reads a str, not {type(text).__name__}: hlo_oracle.load reads files and bytes"
        )
    text = text.removeprefix("\ufeff")  # a byte order mark, as editors of Windows leave it
    with _no_collection():
        return _ModuleReader(source_of(text)).module()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disable the garbage collector: all that a parse makes stays reachable, and searching it for
    garbage would take a third of the time (bench/parse.py), and once at the end a tenth.

    Freezing and unfreezing all objects moves them to the oldest generation without a scan; if the
    caller has frozen objects, that is skipped, as they would be unfrozen too.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _thread(name: str, code: str, text: str) -> str:
    """Check a computation's execution thread and return its text; raise ValueError if malformed."""
    if name != "execution_thread":
        raise ValueError(
            f"unexpected attribute {name!r} of a computation; allowed: execution_thread"
        )
    if code[:1] not in "\"'":
        raise ValueError("execution_thread: expected a quoted string")
    return text


class _ModuleReader:
    """Read one module, computation by computation, in the order of the text."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._computations: dict[str, Computation] = {}
        self._shapes = ShapeReader()
        # Weakly: a reader that its own parts refer to would be left to the garbage collector.
        reader = weakref.proxy(self)
        self._tails = TailReader(
            source, self._computations, lambda place: str(reader._inline(place))
        )
        self._expressions = ExpressionReader(source, self._shapes, self._tails, self._computations)
        self._lines = LineReader(source, self._shapes, self._tails, self._expressions)

    def module(self) -> Module:
        source = self._source
        position = source.skip(0)
        match = _MODULE.match(source.code, position)
        if match is None and not _COMPUTATION.match(source.code, position):
            return self._single(position)
        start = position if match is None else match.end()
        header, end = self._tails.header(
            start, lambda name, code, text: read_header(name, code, text, self._shapes)
        )
        position, preamble = self._preamble(end)
        entry = None
        while position < len(source.code):
            name, is_entry, end = self._computation(position)
            if is_entry and entry is not None:
                source.fail("a second ENTRY computation", position)
            entry = name if is_entry else entry
            position = source.skip(end)
        if not self._computations:
            source.fail("a module needs a computation", position)
        entry = entry if entry is not None else next(reversed(self._computations))
        return Module(
            f"module_{entry}" if match is None else plain_name(match[1]),
            tuple(self._computations.values()),
            entry,
            header,
            preamble,
            source.text,
        )

    def _single(self, position: int) -> Module:
        """Parse a module of one instruction; undefined operands become its parameters."""
        source, read = self._source, self._expressions
        if not _INSTRUCTION.match(source.code, position):
            expected = "expected HloModule, a computation, or an instruction"
            hint = f"{expected}: this is the name of a file; hlo_oracle.load(path) reads it"
            source.fail(hint if _FILE_NAME.fullmatch(source.text) else expected, position)
        found = Known()
        read.take_undefined_for_parameters()
        if _SHAPE.match(source.code, position):
            made, end = read.definition(_ANONYMOUS, position, found)
        else:
            _, made, end = read.read(position, found)
        if source.skip(end) < len(source.code):
            source.fail("expected nothing behind a single instruction", source.skip(end))
        if made.name in found:
            source.fail(f"instruction {made.name!r} is defined twice", position)
        instructions = (*found.values(), made)
        computation = Computation(_ANONYMOUS, instructions, made.name)
        name = read.fresh_computation(_ANONYMOUS)
        self._computations[name] = replace(computation, name=name)
        return Module(_ANONYMOUS, tuple(self._computations.values()), name, text=source.text)

    def _inline(self, place: int) -> str:
        """Read a computation written in place of its name; add it and return its name."""
        self._expressions.deeper(place)
        found, root, _ = self._body(place + 1)
        self._expressions.shallower()
        name = self._expressions.fresh_computation(_ANONYMOUS)
        self._computations[name] = Computation(name, tuple(found.values()), root)
        return name

    def _preamble(self, position: int) -> tuple[int, str]:
        """Return the position behind the tables of files and frames, and their text."""
        start = position = self._source.skip(position)
        for table in _TABLES if self._source.code.startswith("File", position) else ():
            match = table.match(self._source.code, position)
            position = position if match is None else match.end()
        return position, self._source.text[start:position].strip()

    def _computation(self, position: int) -> tuple[str, bool, int]:
        """Read a computation; return its name, whether it is ENTRY, and where it ends."""
        source = self._source
        match = _COMPUTATION.match(source.code, position)
        if match is None:
            source.fail("expected a computation", position)
        name = plain_name(match[2])
        if name in KEYWORDS and match[2] == name:
            source.fail(f"illegal name {name!r} of a computation; call it '{name}_'", position)
        if name in self._computations:
            source.fail(f"computation {name!r} is defined twice", match.start(2))
        place, start = match.end(), 0
        result: Shape | None = None
        if source.code[place] == "(":
            place = source.skip(source.closing(place) + 1)
            if not source.code.startswith("->", place):
                source.fail("expected ->", place)
            start = source.skip(place + 2)
            result, place = self._expressions.shape(start)
            place = source.skip(place)
        if not source.code.startswith("{", place):
            source.fail("expected {", place)
        found, root, place = self._body(place + 1)
        if result is not None and result is not found[root].shape:
            self._check_result(result, start, found[root])
        annotations, place = self._tails.header(place, _thread)
        self._computations[name] = Computation(name, tuple(found.values()), root, annotations)
        return name, match[1] is not None, place

    def _check_names(self, found: Known) -> None:
        """Raise ParseError for illegal names: of element types, of keywords that neither a % nor a
        colon marks, and misspelled ones without quotes."""
        odd = odd_name(self._source.code, found)
        if odd is not None:
            self._source.fail("expected an instruction: name = shape opcode(operands)", odd.offset)
        for name in () if _WORDS.isdisjoint(found) else filter(_WORDS.__contains__, found):
            offset = found[name].offset
            marked = _MARKED.match(self._source.code, offset)
            if name in ELEMENT_TYPES or not marked:
                message = f"illegal name {name!r} of an instruction; call it '{name}_'"
                self._source.fail(message, offset)

    def _check_result(self, given: Shape, position: int, root: Instruction) -> None:
        if not same_bounds(given, root.shape):
            message = f"the result is declared {given}, root {root.name!r} is {root.shape}"
            self._source.fail(message, position)

    def _body(self, position: int) -> tuple[Known, str, int]:
        """Read instructions up to the closing brace; return them, the root's name, and the end."""
        source = self._source
        found = Known()
        roots: list[str] = []
        position = source.skip(position)
        while True:
            marked, position = self._lines.read(position, found)
            roots += marked
            position = source.skip(position)
            if source.code.startswith("}", position):
                break
            is_root, instruction, position = self._expressions.read(position, found)
            name = instruction.name
            if name in found:
                source.fail(f"instruction {name!r} is defined twice", instruction.offset)
            found[name] = instruction
            roots += [name] if is_root else []
        if not found:
            source.fail("a computation needs an instruction", position)
        if len(roots) > 1:
            source.fail("a second ROOT in one computation", found[roots[1]].offset)
        self._check_names(found)
        return found, roots[0] if roots else next(reversed(found)), position + 1
