"""Read and print quoted strings with C's escapes."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))|([^\\]++)", re.S)
_LETTERS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_SHOWN = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def read_string(text: str) -> str:
    """Decode a quoted string with C's escapes (UTF-8); raise ValueError without quotes."""
    if len(text) < 2 or text[0] not in "\"'" or text[-1] != text[0]:
        raise ValueError("expected a quoted string")
    if "\\" not in text:
        return text[1:-1]
    found = bytearray()
    for hexadecimal, octal, letter, plain in _ESCAPE.findall(text[1:-1]):
        if letter:
            found += _LETTERS.get(letter, letter).encode()
        elif plain:
            found += plain.encode(errors="surrogateescape")
        else:
            # Three octal digits may be more than a byte.
            found.append(int(hexadecimal, 16) if hexadecimal else int(octal, 8) & 0xFF)
    # Bytes that are not UTF-8 become surrogates, which show_string turns into the same bytes.
    return found.decode(errors="surrogateescape")


def show_string(value: str) -> str:
    """Escape a string as XLA does: every byte that ASCII does not print is octal."""
    shown = []
    for byte in value.encode(errors="surrogateescape"):
        letter = chr(byte)
        printed = letter if 32 <= byte < 127 else f"\\{byte:03o}"
        shown.append(_SHOWN.get(letter, printed))
    return '"' + "".join(shown) + '"'
