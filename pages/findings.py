"""Make the index page of campaigns and reports: findings, growth over time, and coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlo.opcodes import OPCODES
from pages.html_file import INDEX, Page, page
from pages.views import Data


def index(
    title: str, campaigns: Sequence[Mapping[str, object]], found: Sequence[Mapping[str, object]]
) -> Page:
    """Make a page with the findings by oracle, each with its program and its evidence, the growth
    of each campaign, and the coverage of its programs.

    The fields of ``campaigns`` and ``found`` are those of :mod:`fuzz.campaign.overview`.
    """
    data: Data = {
        "title": title,
        "campaigns": list(campaigns),
        "found": list(found),
        "opcodes": list(OPCODES),
    }
    return page(title, data, INDEX)
