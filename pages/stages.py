"""Make the page of a program on its way through a compiler: what each pass changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlo.module import Module
from pages.explanation import MEASURES
from pages.html_file import Page, page
from pages.views import Data, view


class Stage(NamedTuple):
    """Name a stage by the pass that made it."""

    name: str
    module: Module


class Blame(NamedTuple):
    """Say which stage changed what the program means, by its number, and at which instruction."""

    stage: int
    instruction: str
    evidence: str


def stages(title: str, found: Sequence[Stage], blame: Blame | None = None) -> Page:
    """Return a page with a slider over stages; those that changed nothing are left out, as are
    their numbers of ``blame``."""
    views: list[Data] = []
    numbers: dict[int, int] = {}
    before: Module | None = None
    for number, stage in enumerate(found):
        if stage.module != before:
            numbers[number] = len(views)
            views.append(view(f"{number} {stage.name}", stage.module))
        before = stage.module
    data: Data = {"title": title, "views": views, "slider": True, "first": 0, **MEASURES}
    if blame is not None and blame.stage in numbers:
        own = numbers[blame.stage]
        data |= {
            "first": own,
            "guilty": own,
            "marked": blame.instruction,
            "blame": blame.evidence,
        }
    return page(title, data)
