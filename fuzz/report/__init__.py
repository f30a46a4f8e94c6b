"""A folder that shows one failure to anyone: see :func:`write`."""

from fuzz.report.folder import Report, write

__all__ = ["Report", "write"]
