"""Have links to files of the repository that are not on the site be plain text there, and build
without garbage collection."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
_DOCS = Path(__file__).resolve().parent


def on_startup(command: str, dirty: bool) -> None:
    """Turn garbage collection off in a build, as MkDocs calls it first: next to nothing becomes
    garbage, and the syntax trees of all modules are searched for it again and again."""
    if command == "build":
        gc.disable()


def on_page_markdown(markdown: str, page: Any, **given: Any) -> str:
    """Replace links out of the documentation by their text, as MkDocs calls it for each page."""
    folder = (_DOCS / page.file.src_path).parent

    def replaced(match: re.Match[str]) -> str:
        text, target, _ = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        path = (folder / target).resolve()
        is_page = _DOCS in path.parents and path.suffix in (".md", ".svg")
        return match[0] if is_page else text

    return _LINK.sub(replaced, markdown)
