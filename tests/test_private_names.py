"""A private name at the top of a module is used in that module: anything else is dead code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from conftest import ROOT


def defined(node: ast.stmt) -> list[str]:
    """The names that a statement defines; a decorator may register what it decorates."""
    match node:
        case ast.FunctionDef() | ast.ClassDef() if not node.decorator_list:
            return [node.name]
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name() as target):
            return [target.id]
        case _:
            return []


def unused(text: str) -> Iterator[str]:
    """Yield the private names that a module defines and does not name again."""
    times = Counter(re.findall(r"\w+", text))
    for node in ast.parse(text).body:
        for name in defined(node):
            if name.startswith("_") and not name.startswith("__") and times[name] == 1:
                yield name


def test_private_names_are_used() -> None:
    files = [*ROOT.glob("[!.]*/**/*.py")]
    assert len(files) > 1000
    found = {str(p.relative_to(ROOT)): [*unused(p.read_text())] for p in files}
    assert {file: names for file, names in found.items() if names} == {}
    assert [*unused("_A = 1\n_B = 2\ndef _c(): return _B\n@f\ndef _d(): ...\n")] == ["_A", "_c"]
