"""Open the pages of programs in chromium: no errors, no requests, and how long they take.

    python -m selftest.browser_pages                      # of the corpus
    python -m selftest.browser_pages --screenshots docs/see --campaign DIR

Each page is opened, every tab shown, everything opened and closed. Times are those of the page's
main thread, in seconds of the processor: what else the machine does is not in them. Exit status: 0
fine, 1 a page logged an error or asked for something. It needs chromium (apt install chromium) and
playwright (pip install '.[browser]').
"""

from __future__ import annotations

import argparse
import base64
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import backend_c
import hlo
import pages
from fuzz.campaign.overview import overview
from hlo.errors import Error
from hlo.module import Module
from hlo_oracle import arguments
from hlo_oracle.loading import programs
from hlo_oracle.page_values import page_values

ROOT = Path(__file__).resolve().parents[1]
FRAMES = 20
PAN = """([scale, frames]) => {
  const { picture } = window.page;
  picture.scale = scale;
  picture.x = 0;
  picture.y = picture.scene.height / 3;
  for (let n = 0; n < frames; n++) { picture.y += 30 / scale; picture.draw(); }
}"""
ALL_OF_IT = """() => {
  for (const tab of document.querySelectorAll('[role=tab]')) tab.click();
  window.page.picture.toggleAll();
  window.page.picture.toggleAll();
}"""
SOFTMAX = """() => {
  const { picture, selected } = window.page;
  picture.toggle(picture.scene.nodes.find(node => node.inside === undefined && node.opens
    && selected.program.name[node.i] === 'div.11'));
  picture.fit();
  selected.step(4, 'test');
  [...document.querySelectorAll('[role=tab]')].find(tab => tab.textContent === 'C').click();
}"""

FARTHEST = """() => {
  const { selected } = window.page, { deviation } = selected.program;
  selected.choose([deviation.indexOf(Math.max(...deviation))], { from: 'test' });
}"""


class Times(NamedTuple):
    """Hold seconds: until a page is drawn, and for a frame at the scale 1 and with all in view."""

    opened: float
    near: float
    far: float


class Browser:
    """Open pages in chromium; ``faults`` has what they should not have done."""

    def __init__(self, driver: Any) -> None:
        self._started = driver.chromium.launch(executable_path=shutil.which("chromium"))
        self._folder = Path(tempfile.mkdtemp())
        self.faults: list[str] = []

    def _found(self, fault: str) -> None:
        """Take note of a fault, and tell it."""
        self.faults.append(fault)
        print(fault, file=sys.stderr)

    @contextmanager
    def open(self, page: pages.Page, scheme: str = "light") -> Iterator[tuple[Any, Any]]:
        """Open a page; yield it with a session that measures it."""
        file = page.write(self._folder / "page.html").as_uri()
        size = {"width": 1280, "height": 800}
        context = self._started.new_context(viewport=size, color_scheme=scheme)
        tab = context.new_page()
        tab.on("console", lambda message: self._found(message.text))
        tab.on("pageerror", lambda error: self._found(str(error)))
        tab.on("request", lambda request: self._asked(request.url, (file, "data:,")))
        session = context.new_cdp_session(tab)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab.goto(file)
        tab.wait_for_function("window.page && window.page.picture?.frames !== 0")
        try:
            yield tab, session
        finally:
            context.close()

    def _asked(self, url: str, allowed: tuple[str, ...]) -> None:
        """Take note of a request that a page should not make."""
        if url not in allowed:
            self._found(url)

    def measured(self, page: pages.Page) -> Times:
        """Open a page, pan over it, and show all that it has."""
        with self.open(page) as (tab, session):
            opened = _busy(session)
            frames = []
            for scale in (1.0, 0.01):
                before = _busy(session)
                tab.evaluate(PAN, [scale, FRAMES])
                frames.append((_busy(session) - before) / FRAMES)
            tab.evaluate(ALL_OF_IT)
        return Times(opened, *frames)

    def close(self) -> None:
        """End the browser, and remove what it was shown."""
        self._started.close()
        shutil.rmtree(self._folder)


def _busy(session: Any) -> float:
    """Return the seconds that the main thread of a page has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


def explained(module: Module) -> pages.Page:
    """Return the page of a module, with its kernels if it compiles."""
    try:
        return pages.explanation(module, backend_c.explain(module, threads=1))
    except Error:
        return pages.explanation(module)


def judged_by_xla(module: Module) -> pages.Page:
    """Return the page of a module with values, its own and those of XLA."""
    program = programs.Program(module, hlo.format(module))
    values = page_values(program, arguments.from_seed(module, 0), 0, "xla")
    return pages.explanation(module, backend_c.explain(module, threads=1), values=values)


def found_in(directories: list[Path]) -> pages.Page:
    """Return the index page of directories."""
    seen = overview(directories)
    return pages.index("Found", [*map(asdict, seen.campaigns)], [*map(asdict, seen.found)])


def screenshots(browser: Browser, directory: Path, campaign: Path | None) -> None:
    """Write the pictures of docs/see.md, that of the index if there is a campaign to show."""
    directory.mkdir(parents=True, exist_ok=True)
    attention = _module(ROOT / "examples" / "attention.hlo")
    training = _module(ROOT / "examples" / "training_step.hlo")
    stages = [pages.Stage("input", training)]
    hlo.passes.run(training, "backend_c", lambda n, m: stages.append(pages.Stage(n, m)))
    with browser.open(explained(attention)) as (tab, session):
        tab.evaluate(SOFTMAX)
        _write_picture(session, directory / "kernels.webp")
    with browser.open(explained(training), "dark") as (tab, session):
        tab.get_by_role("tab", name="Memory").click()
        tab.evaluate("window.page.selected.step(12, 'test')")
        _write_picture(session, directory / "memory.webp")
    with browser.open(pages.stages(training.name, stages)) as (tab, session):
        tab.evaluate("window.page.selected.show(2)")
        _write_picture(session, directory / "stages.webp")
    with browser.open(judged_by_xla(training)) as (tab, session):
        tab.get_by_label("Colour shows").select_option("deviation")
        tab.evaluate(FARTHEST)
        _write_picture(session, directory / "values.webp")
    if campaign is not None:
        with browser.open(found_in([campaign, ROOT / "docs" / "found"])) as (tab, session):
            tab.locator(".finding-row", has_text="wrong result").first.click()
            _write_picture(session, directory / "index.webp")


def _write_picture(session: Any, path: Path) -> None:
    """Write what a page shows, in a format that keeps text small and sharp."""
    wanted = {"format": "webp", "quality": 70}
    path.write_bytes(base64.b64decode(session.send("Page.captureScreenshot", wanted)["data"]))


def _module(path: Path) -> Module:
    """Read a program."""
    module = hlo.parse(path.read_text("utf-8"))
    hlo.verify(module)
    return module


def _programs(paths: list[Path]) -> Iterator[Path]:
    """Yield files, and the programs of directories."""
    for path in paths:
        yield from sorted(path.rglob("*.txt")) if path.is_dir() else [path]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    corpus = [ROOT / "tests" / "corpus"]
    parser.add_argument("paths", type=Path, nargs="*", default=corpus, metavar="FILE|DIR")
    parser.add_argument(
        "--screenshots", type=Path, metavar="DIR", help="write those of docs/see.md"
    )
    parser.add_argument(
        "--campaign", type=Path, metavar="DIR", help="of hlo fuzz, which the index shows"
    )
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = Browser(driver)
        if options.screenshots is not None:
            screenshots(browser, options.screenshots, options.campaign)
        else:
            for path in _programs(options.paths):
                module = _module(path)
                page = explained(module)
                times = [f"{1e3 * seconds:8.1f} ms" for seconds in browser.measured(page)]
                print(f"{path.name:50} {module.instruction_count:6} {len(page.text):9}", *times)
        browser.close()
    return 1 if browser.faults else 0


if __name__ == "__main__":
    sys.exit(main())
