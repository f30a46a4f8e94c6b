"""Pages of the corpus in a browser, a few of them; all are ``python -m selftest.browser_pages``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import ROOT, has_c_compiler

import pages
from selftest.browser import CHROMIUM, VIEWS, Browser
from selftest.browser_pages import open_all
from selftest.page_pictures import MOST_DIFFERENCE, read, stages_picture

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium"),
    pytest.mark.skipif(not has_c_compiler(), reason="no C compiler"),
]
CORPUS = ROOT / "tests" / "corpus"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as driver:
        made = Browser(driver)
        yield made
        made.close()


def test_pages_of_the_corpus_open_in_every_view(browser: Browser) -> None:
    smallest = min(CORPUS.rglob("*.txt"), key=lambda path: (path.stat().st_size, path))
    (line,) = open_all(browser, [smallest])
    assert line.startswith(smallest.name) and browser.faults == []


def test_what_a_page_should_not_do_is_a_fault(browser: Browser) -> None:
    page = pages.index("t", [], [])
    for old, new, fault in (
        ('"use strict";', '"use strict"; console.log("here");', "here"),
        ("* { box-sizing", "header { width: 2000px; } * { box-sizing", "pixels wide"),
        ('"aria-label": "Search findings"', '"data-x": ""', "no name: <input"),
    ):
        assert old in page.text
        policy = (
            page.text.index("default-src"),
            page.text.index('">', page.text.index("default-src")),
        )
        changed = page.text.replace(old, new).replace(page.text[slice(*policy)], "")
        browser.faults.clear()
        browser.check(pages.Page(changed), "t", VIEWS[:1])
        assert browser.faults and all(fault in one for one in browser.faults)
    browser.faults.clear()


def test_pictures_are_compared_loosely(browser: Browser) -> None:
    training = read(ROOT / "examples" / "training_step.hlo")
    picture = stages_picture(browser, training)
    kept = (ROOT / "docs" / "see" / "stages.webp").read_bytes()
    assert browser.difference(picture, kept) < MOST_DIFFERENCE
    assert browser.difference(stages_picture(browser, training, "dark"), kept) > 0.5
    other = (ROOT / "docs" / "see" / "values.webp").read_bytes()
    assert browser.difference(picture, other) > MOST_DIFFERENCE
