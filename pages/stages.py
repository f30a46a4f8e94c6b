"""Make the page of a program's stages in a compiler: what each pass changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlo.module import Module
from pages.explanation import MEASURES
from pages.html_file import Page, page
from pages.views import Data, view


class Stage(NamedTuple):
    """The program after a pass, and the pass's name."""

    name: str
    module: Module


class Blame(NamedTuple):
    """The stage, by number, that changed the program's meaning, and the instruction where it
    did."""

    stage: int
    instruction: str
    evidence: str


def stages(title: str, found: Sequence[Stage], blame: Blame | None = None) -> Page:
    """Make a page with a slider over the stages; stages that changed nothing are left out, and the
    number in ``blame`` is adjusted."""
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
