"""Write pages about programs for a browser, each one file that needs no network, and pictures."""

from pages.explanation import explanation
from pages.findings import index
from pages.html_file import Page
from pages.pictures import dot, svg
from pages.sources import source_lines
from pages.stages import Blame, Stage, stages
from pages.trace import trace
from pages.values import Judged, Observed, with_judged

__all__ = [
    "Blame",
    "Judged",
    "Observed",
    "Page",
    "Stage",
    "dot",
    "explanation",
    "index",
    "source_lines",
    "stages",
    "svg",
    "trace",
    "with_judged",
]
