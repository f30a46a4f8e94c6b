"""Texts of every form: what the parser makes of them, and what XLA's makes of them.

tests/hlo/grammar has the texts, one on a line, with \\n for a new line (those of
modules.txt and, in the style of XLA's own tests and of dumps, programs.txt: after ===).
tests/golden/grammar has for each its canonical print, or after ! why it is no program (parse) or
means nothing (verify). XLA (jaxlib, where it is installed) must take the same texts, and what we
print must mean to it what the text meant.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
from conftest import TESTS

import hlo

GRAMMAR = TESTS / "hlo" / "grammar"
FILES = sorted(path.stem for path in GRAMMAR.glob("*.txt"))
_REDUCER = "a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
BEFORE = f"""add_s {{ {_REDUCER} ROOT c = f32[] add(a, b) }}
lt {{ {_REDUCER} ROOT c = pred[] compare(a, b), direction=LT }}
ge {{ {_REDUCER} ROOT c = pred[] compare(a, b), direction=GE }}
sc {{ {_REDUCER} c = f32[] add(a, b)\n ROOT t = (f32[], f32[]) tuple(c, c) }}
neg {{ a = f32[2] parameter(0)\n ROOT c = f32[2] negate(a) }}
negs {{ a = f32[] parameter(0)\n ROOT c = f32[] negate(a) }}
cnd {{ a = f32[] parameter(0)\n ROOT c = pred[] is-finite(a) }}
"""
ABOVE = """ENTRY e {
  x = f32[2] parameter(0)
  m = f32[4,4] parameter(1)
  t = (f32[2], (s32[], f32[3])) parameter(2)
  k = token[] after-all()
  z = f32[] constant(0)
  i = s32[] constant(1)
"""
MORE = """  s4v = f32[4] broadcast(z), dimensions={}
  im = f32[1,8,8,3] broadcast(z), dimensions={}
  ke = f32[3,3,3,16] broadcast(z), dimensions={}
  cx = c64[2] complex(x, x)
  p = pred[2] compare(x, x), direction=EQ
  idx = s32[2,1] broadcast(i), dimensions={}
  upd = f32[2,4] broadcast(z), dimensions={}
  r3 = f32[2,4,5] broadcast(z), dimensions={}
  gs = s32[2] broadcast(i), dimensions={}
  sm = f32[4,1] broadcast(z), dimensions={}
  st2 = u64[2] constant({1,2})
  ux = u32[2] constant({1,2})
"""
CHAINS = {
    "cs": "  cs = (f32[2], f32[2], u32[]) copy-start(x)\n",
    "rcv": "  rcv = (f32[2], u32[], token[]) recv(k), channel_id=1\n",
    "snd": "  snd = (f32[2], u32[], token[]) send(x, k), channel_id=1\n",
}


def instruction(text: str) -> str:
    chains = "".join(line for name, line in CHAINS.items() if re.search(rf"\b{name}\b", text))
    return f"HloModule m\n{BEFORE}{ABOVE}{MORE}{chains}  ROOT y = {text}\n}}\n"


MODULES: dict[str, Callable[[str, str], str]] = {
    "headers": lambda name, text: f"HloModule m, {text}\n{ABOVE}  ROOT y = s32[] negate(i)\n}}\n",
    "instructions": lambda name, text: instruction(text),
    "literals": lambda name, text: f"HloModule m\nENTRY e {{ ROOT p = {name} constant({text}) }}",
    "modules": lambda name, text: text,
    "programs": lambda name, text: text,
    "shapes": lambda name, text: f"HloModule m\nENTRY e {{ ROOT p = {text} parameter(0) }}",
}


WHOLE = frozenset(("modules", "programs"))  # files of whole modules


def forms(file: str) -> Iterator[tuple[str, str]]:
    """Each form's name, and a module with it."""
    text = (GRAMMAR / f"{file}.txt").read_text()
    if file in WHOLE:
        records = [record.split("\n", 1) for record in text.split("=== ")[1:]]
    else:
        records = [line.split(" | ", 1) for line in text.splitlines()]
    for name, body in records:
        if file not in WHOLE or name.endswith("\\e"):
            body = body.strip("\n").encode().decode("unicode_escape")
        shown = f"{name} | {body}" if file == "literals" else name.removesuffix("\\e")
        yield shown.replace("\n", " "), MODULES[file](name, body)


def outcome(file: str, text: str) -> str:
    """The canonical print (of the entry from its root on, but for whole modules), or an error."""
    try:
        module = hlo.parse(text)
        hlo.verify(module)
    except hlo.ParseError as error:
        return f"! {error.line}:{error.column}: {error.message}"
    except hlo.VerifyError as error:
        return f"! {error}"
    for dialect in ("short", "long"):
        assert hlo.parse(hlo.format(module, dialect)) == module
    shown = hlo.format(module, "canonical")
    assert hlo.format(hlo.parse(shown), "canonical").count("\n") >= shown.count("\n")
    if file == "headers":
        return shown.splitlines()[0]
    shown = shown[shown.index("\n\n") + 2 :] if file in WHOLE else shown[shown.index("ENTRY") :]
    if file not in WHOLE:
        shown = shown[shown.index("ROOT") :].rstrip().removesuffix("}")
    return shown.rstrip()


@pytest.mark.parametrize("file", FILES)
def test_forms(file: str, golden: Callable[[str, str], None]) -> None:
    lines = [f"{name}\n    {outcome(file, text)}" for name, text in forms(file)]
    golden(f"grammar/{file}.txt", "\n".join(lines) + "\n")


_SERVER = """
import json, sys
from fuzz.peers.jaxlib_modules import of_hlo
for line in sys.stdin:
    try:
        module = of_hlo().hlo_module_from_text(json.loads(line))
        options = of_hlo().HloPrintOptions.canonical()
        options.print_large_constants = True
        answer = module.to_string(options)
    except Exception as error:
        answer = "!" + str(error)
    print(json.dumps(answer), flush=True)
"""


class _Xla:
    """XLA's parser in a process of its own: some texts end it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def canonical(self, text: str) -> str | None:
        """Print a text with XLA, or ! and its error; None if the process ended."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if answer:
            return str(json.loads(answer))
        self.close()
        return None

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


def entry(text: str) -> str:
    """A canonical text from its entry on, with the bodies of what that calls, without a name."""
    return re.sub(r"^ENTRY \S+", "ENTRY", text[text.index("\nENTRY ") + 1 :])


def disagreement(xla: _Xla, text: str) -> str | None:
    """How XLA reads a text otherwise than this parser; what only hlo.verify rejects is not said."""
    theirs = xla.canonical(text)
    rejected = theirs is None or theirs.startswith("!")
    try:
        module = hlo.parse(text)
        hlo.verify(module)
    except hlo.ParseError as error:
        return None if rejected else f"XLA reads it: {error.message}"
    except hlo.VerifyError:
        return None
    if rejected or theirs is None:
        return "XLA does not read it"
    for dialect in ("short", "long", "canonical"):
        again = xla.canonical(hlo.format(module, dialect))
        if again is None or again.startswith("!"):
            return f"XLA does not read our {dialect} print: {again}"
        if dialect != "canonical" and entry(again) != entry(theirs):
            return f"XLA takes our {dialect} print for another program"
    return None


@pytest.mark.skipif(find_spec("jaxlib") is None, reason="jaxlib is not installed")
def test_xla_reads_the_same(golden: Callable[[str, str], None]) -> None:
    """XLA reads texts as this parser does, but for those that docs/text.md speaks of."""
    xla = _Xla()
    rows = [
        f"{file}: {name}: {found}\n"
        for file in FILES
        for name, text in forms(file)
        if (found := disagreement(xla, text)) is not None
    ]
    xla.close()
    golden("grammar/disagreements.txt", "".join(rows))
