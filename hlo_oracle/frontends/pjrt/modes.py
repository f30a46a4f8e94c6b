"""Choose the mode and number of devices: HLO_ORACLE_MODE and HLO_ORACLE_DEVICES, or client
options."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from hlo.errors import ArgumentError
from hlo_oracle import __version__
from hlo_oracle.frontends.pjrt.foreign_memory import NamedValue

PLATFORM = "hlo_oracle"
_MOST_DEVICES = 1024  # as interp.evaluate has it


class Mode(Enum):
    """How programs run. fast and exact: as C; interp: in NumPy; check: as exact C, and XLA:CPU is
    judged."""

    FAST = "fast"
    EXACT = "exact"
    INTERP = "interp"
    CHECK = "check"


def mode_of(options: Mapping[str, NamedValue], environ: Mapping[str, str]) -> Mode:
    """Return the mode of the option ``mode``, else of HLO_ORACLE_MODE, else fast."""
    named = str(options.get("mode") or environ.get("HLO_ORACLE_MODE") or Mode.FAST.value)
    try:
        return Mode(named)
    except ValueError:
        known = ", ".join(mode.value for mode in Mode)
        raise ArgumentError(f"HLO_ORACLE_MODE={named}: one of {known}") from None


def devices_of(options: Mapping[str, NamedValue], environ: Mapping[str, str]) -> int:
    """Return the number of the option ``devices``, else of HLO_ORACLE_DEVICES, else 1."""
    text = str(options.get("devices") or environ.get("HLO_ORACLE_DEVICES") or 1)
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= _MOST_DEVICES):
        raise ArgumentError(f"HLO_ORACLE_DEVICES={text}: a number from 1 to {_MOST_DEVICES}")
    return int(text)


def version_text() -> str:
    """Return the platform's version string for clients."""
    return f"hlo-oracle {__version__}"
