"""Take the pictures of docs/see.md, and compare them with the existing ones."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import backend_c
import hlo
import pages
from fuzz.campaign.overview import overview
from hlo.module import Module
from hlo_oracle import arguments
from hlo_oracle.loading import programs
from hlo_oracle.page_values import page_values
from selftest.browser import Browser

ROOT = Path(__file__).resolve().parents[1]
# Of the mean colours of a tile: fonts, and figures of the machine, differ by less (0.05 between two
# sizes of text), a panel that is not there by more.
MOST_DIFFERENCE = 0.1
SOFTMAX = """() => {
  const { picture, selected } = window.page;
  picture.toggle(picture.scene.nodes.find(node => node.inside === undefined && node.opens
    && selected.program.name[node.i] === 'div.11'));
  picture.fit();
  selected.choose([selected.program.byName.get('reduce_sum.7')], { from: 'test' });
  [...document.querySelectorAll('[role=tab]')].find(tab => tab.textContent === 'C').click();
}"""

FARTHEST = """() => {
  const { selected } = window.page, { deviation } = selected.program;
  selected.choose([deviation.indexOf(Math.max(...deviation))], { from: 'test' });
}"""


def judged_by_xla(module: Module) -> pages.Page:
    """Make the page of a module with exact values, and the verdict on XLA's."""
    program = programs.Program(module, hlo.format(module))
    values = page_values(program, arguments.from_seed(module, 0), 0, "xla")
    return pages.explanation(module, backend_c.explain(module, threads=1), values=values)


def found_in(directories: list[Path]) -> pages.Page:
    """Make the index page of directories."""
    seen = overview(directories)
    return pages.index("Found", [*map(asdict, seen.campaigns)], [*map(asdict, seen.found)])


def pictures(browser: Browser, campaign: Path | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield the name and picture of each page of docs/see.md; the index only if a campaign is
    given."""
    attention = read(ROOT / "examples" / "attention.hlo")
    training = read(ROOT / "examples" / "training_step.hlo")
    yield "stages", stages_picture(browser, training)
    with browser.open(pages.explanation(attention, backend_c.explain(attention, threads=1))) as (
        tab,
        session,
    ):
        tab.evaluate(SOFTMAX)
        yield "kernels", _picture(session)
    compiled = pages.explanation(training, backend_c.explain(training, threads=1))
    with browser.open(compiled, "dark") as (tab, session):
        tab.get_by_role("tab", name="Memory").click()
        tab.evaluate("window.page.selected.step(12, 'test')")
        yield "memory", _picture(session)
    with browser.open(judged_by_xla(training)) as (tab, session):
        tab.get_by_label("Colour shows").select_option("deviation")
        tab.evaluate(FARTHEST)
        yield "values", _picture(session)
    if campaign is not None:
        with browser.open(found_in([campaign, ROOT / "docs" / "found"])) as (tab, session):
            tab.locator(".finding-row", has_text="wrong result").first.click()
            yield "index", _picture(session)


def stages_picture(browser: Browser, module: Module, scheme: str = "light") -> bytes:
    """Take the picture of the page of a module's first passes."""
    stages = [pages.Stage("input", module)]
    hlo.passes.run(module, "backend_c", lambda n, m: stages.append(pages.Stage(n, m)))
    with browser.open(pages.stages(module.name, stages), scheme) as (tab, session):
        tab.evaluate("window.page.selected.show(2)")
        return _picture(session)


def compare(browser: Browser, directory: Path, campaign: Path | None) -> Iterator[str]:
    """Compare the pictures with those of a directory; yield a line for each, and record a fault
    where one differs by much."""
    for name, picture in pictures(browser, campaign):
        difference = browser.difference(picture, (directory / f"{name}.webp").read_bytes())
        if difference > MOST_DIFFERENCE:
            browser.fault(f"{name}.webp differs by {difference:.3f} of {MOST_DIFFERENCE}")
        yield f"{name:10} {difference:.3f}"


def _picture(session: Any) -> bytes:
    """Take a screenshot of a page as WebP, which keeps text small and sharp."""
    wanted = {"format": "webp", "quality": 70}
    return base64.b64decode(session.send("Page.captureScreenshot", wanted)["data"])


def read(path: Path) -> Module:
    """Read a program."""
    module = hlo.parse(path.read_text("utf-8"))
    hlo.verify(module)
    return module
