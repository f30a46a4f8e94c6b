"""Show programs in a browser: pages of one file that need no network, and pictures."""

from pages.explanation import explanation
from pages.html_file import Page
from pages.sources import source_lines

__all__ = ["Page", "explanation", "source_lines"]
