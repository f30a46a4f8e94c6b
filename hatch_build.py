"""Make the long description of a package: README, whose links lead to the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"\[([^\]\[\n]++)\]\((?!https?:)([^()\s]++)\)")


class CustomMetadataHook(MetadataHookInterface):
    """Fill in the metadata of a package that pyproject.toml declares dynamic: the long description.

    Hatchling loads it, as ``tool.hatch.metadata.hooks.custom`` is there.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        home = metadata.get("urls", {}).get("Repository")
        text = with_absolute_links(text, home)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_absolute_links(text: str, home: str | None) -> str:
    """Lead links between files to those of a repository; as long as its address is in no
    ``project.urls``, keep their words alone: an index of packages has no such files."""
    target = r"\1" if home is None else rf"[\1]({home.rstrip('/')}/blob/main/\2)"
    return _RELATIVE.sub(target, text)
