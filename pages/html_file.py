"""Write a page: one HTML file with its data, style and code, which needs no network.

Texts of programs are hostile. They are in the page once, as JSON in a block that browsers do not
run, without any ``<``; the code shows them as text only. The content security policy lets no other
code run, by the hashes of the page's own, and no request leave.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from hlo.io_errors import write_text

# The code of each kind of page, in the order in which it runs: each names only what stands before.
PROGRAM = (
    *("elements.js", "tabs.js", "model.js", "scene.js", "canvas.js", "lists.js"),
    *("targets.js", "values.js", "details.js", "charts.js", "stages.js", "history.js", "main.js"),
)
INDEX = ("elements.js", "tabs.js", "findings.js", "growth.js", "coverage.js", "index.js")


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """The text of a self-contained HTML file."""

    text: str

    def __repr__(self) -> str:
        return f"Page({len(self.text)} bytes)"

    def write(self, path: Path | str) -> Path:
        """Write the file; return its path."""
        path = Path(path)
        write_text(path, self.text)
        return path

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a sandboxed frame."""
        frame = 'sandbox="allow-scripts" style="width: 100%; height: 80vh; border: 0"'
        return f'<iframe {frame} srcdoc="{escape(self.text)}"></iframe>'


def page(title: str, data: Mapping[str, object], scripts: Sequence[str] = PROGRAM) -> Page:
    """Make a page of data, shown by the given scripts."""
    style, script = asset("page.css"), "\n".join(map(asset, scripts))
    text = Template(asset("page.html")).substitute(
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}';"
        " img-src data:; base-uri 'none'; form-action 'none'",
        title=escape(title),
        style=style,
        script=script,
        data=embedded(data),
    )
    return Page(text)


def embedded(data: Mapping[str, object]) -> str:
    """Encode data as JSON that is safe inside of a script block: no tag can begin in it, nor end
    the block."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def asset(name: str) -> str:
    """Read a file of the pages' style or code."""
    return files("pages").joinpath("assets", name).read_text("utf-8")


def _hash(text: str) -> str:
    """Compute the source expression of an inline block for the content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
