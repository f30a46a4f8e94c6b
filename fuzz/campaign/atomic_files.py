"""Write files atomically: processes that read them see the old or the new content, no other."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from hlo.io_errors import of_file


def beside(path: Path) -> Path:
    """Return a new path in the same directory, as only a rename within a file system is atomic.
    Its name is no other process's, on another machine neither, and nobody reads what a killed
    process leaves there."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def write(path: Path, value: Any) -> None:
    """Write a value as JSON."""
    write_bytes(path, (json.dumps(value, indent=1) + "\n").encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes."""
    new = beside(path)
    with of_file(path):
        new.write_bytes(content)
    new.replace(path)
