"""Where an instruction comes from, as its metadata and the tables before the program say."""

from __future__ import annotations

import re

_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*+)"')
_FILE = re.compile(r'source_file="((?:[^"\\]|\\.)*+)" source_line=(\d++)')
_FRAME = re.compile(r"stack_frame_id=(\d++)")
_ROW = re.compile(r"^(\d++) (.*)$", re.MULTILINE)
_FIELD = re.compile(r"([a-z_]++)=(\d++)")


def origin(metadata: str, preamble: str) -> str:
    """The operation's name and FILE:LINE, as far as they are told; else empty."""
    name = _OP_NAME.search(metadata)
    place = _FILE.search(metadata)
    where = f"{place[1]}:{place[2]}" if place else _framed(metadata, preamble)
    return " at ".join(part for part in (name[1] if name else "", where) if part)


def _framed(metadata: str, preamble: str) -> str:
    """By the tables: frame, location, file."""
    frame = _FRAME.search(metadata)
    if frame is None:
        return ""
    frames, locations = (
        {number: dict(_FIELD.findall(row)) for number, row in _table(preamble, title).items()}
        for title in ("StackFrames", "FileLocations")
    )
    location = locations.get(frames.get(frame[1], {}).get("file_location_id", ""), {})
    file = _table(preamble, "FileNames").get(location.get("file_name_id", ""), "")
    return f"{file.strip(chr(34))}:{location.get('line', '?')}" if file else ""


def _table(preamble: str, title: str) -> dict[str, str]:
    _, found, rest = f"\n{preamble}\n".partition(f"\n{title}\n")
    return dict(_ROW.findall(rest.partition("\n\n")[0])) if found else {}
