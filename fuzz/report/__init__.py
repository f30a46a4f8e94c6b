"""Write a self-contained folder that shows one failure to anyone: see :func:`write`."""

from fuzz.report.folder import write
from fuzz.report.report import Report

__all__ = ["Report", "write"]
