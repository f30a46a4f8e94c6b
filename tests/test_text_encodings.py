"""Text files are read and written in an encoding that does not depend on the locale."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from test_architecture import FILES, identity

_PRODUCT = ("hlo", "interp", "backend_c", "bisect_dump", "fuzz", "hlo_oracle", "pages")
# How many positional arguments come before the encoding.
_METHODS = {"read_text": 0, "write_text": 1}
_PATHS = [path for path in FILES if identity(path).split("/")[0] in _PRODUCT]


def _without_encoding(text: str) -> list[int]:
    """List the lines of calls that leave the encoding to the locale."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and len(node.args) == _METHODS.get(node.func.attr, -1)
        and all(keyword.arg != "encoding" for keyword in node.keywords)
    ]


@pytest.mark.parametrize("package", _PRODUCT)
def test_texts_have_an_encoding(package: str) -> None:
    paths = [path for path in _PATHS if identity(path).split("/")[0] == package]
    assert not [(identity(path), found) for path in paths if (found := _of(path))]


def _of(path: Path) -> list[int]:
    return _without_encoding(path.read_text("utf-8"))


def test_calls_without_one_are_seen() -> None:
    text = "p.read_text()\np.write_text(x)\np.read_text('utf-8')\np.write_text(x, encoding='ascii')"
    assert _without_encoding(text) == [1, 2]
