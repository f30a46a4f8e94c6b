"""Open the pages of programs in chromium: no errors, no requests, and how long they take.

    python -m selftest.browser_pages                      # of the corpus
    python -m selftest.browser_pages --compare docs/see   # its pictures, loosely
    python -m selftest.browser_pages --screenshots docs/see --campaign DIR

Each page is opened, everything in it opened and closed, and every tab shown, 1,280 and 400 pixels
wide, light and dark: it fits the width, and each control has a name. The first three times are
those of the page's main thread, of the processor: what else the machine does is not in them; then,
by the clock, when the page was shown and how many frames show while panning. Exit status: 0
fine, 1 a page logged an error, asked for something, is too wide, nameless, or looks otherwise. It
needs chromium (apt install chromium) and playwright (pip install '.[browser]').
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import backend_c
import pages
from hlo.errors import Error
from hlo.module import Module
from hlo_oracle.explaining import other_targets
from selftest.browser import Browser
from selftest.page_pictures import ROOT, compare, pictures, read


def explained(module: Module) -> pages.Page:
    """Make the page of a module, with its kernels if it compiles."""
    try:
        profile = backend_c.explain(module, threads=1)
    except Error:
        return pages.explanation(module)
    return pages.explanation(module, profile, targets=other_targets(module, "fast"))


def open_all(browser: Browser, paths: list[Path]) -> Iterator[str]:
    """Open the pages of programs; yield a line for each."""
    for path in _programs(paths):
        module = read(path)
        page = explained(module)
        *measured, rate = browser.measured(page)
        times = [*(f"{1e3 * seconds:8.1f} ms" for seconds in measured), f"{rate:4.0f} frames/s"]
        browser.check(page, path.name)
        yield " ".join([f"{path.name:50} {module.instruction_count:6} {len(page.text):9}", *times])


def _programs(paths: list[Path]) -> Iterator[Path]:
    """Yield the given files, and the programs in given directories."""
    for path in paths:
        yield from sorted(path.rglob("*.txt")) if path.is_dir() else [path]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    corpus = [ROOT / "tests" / "corpus"]
    parser.add_argument("paths", type=Path, nargs="*", default=corpus, metavar="FILE|DIR")
    parser.add_argument(
        "--screenshots", type=Path, metavar="DIR", help="write those of docs/see.md"
    )
    parser.add_argument("--compare", type=Path, metavar="DIR", help="compare those in a directory")
    parser.add_argument(
        "--campaign", type=Path, metavar="DIR", help="of hlo fuzz, which the index shows"
    )
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = Browser(driver)
        if options.screenshots is not None:
            options.screenshots.mkdir(parents=True, exist_ok=True)
            for name, picture in pictures(browser, options.campaign):
                (options.screenshots / f"{name}.webp").write_bytes(picture)
        elif options.compare is not None:
            for line in compare(browser, options.compare, options.campaign):
                print(line, flush=True)
        else:
            for line in open_all(browser, options.paths):
                print(line, flush=True)
        browser.close()
    return 1 if browser.faults else 0


if __name__ == "__main__":
    sys.exit(main())
