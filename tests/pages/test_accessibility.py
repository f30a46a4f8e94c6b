"""Check pages with the tools of others: axe-core finds no barrier, and chromium tells screen
readers of all that can be used. Skipped without chromium or playwright; axe-core comes with the
same extra."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
from conftest import has_c_compiler
from page_examples import MODEL, SOURCES, found, module, page_with_values, profile

import pages
from selftest.browser import CHROMIUM, Browser

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium"),
    pytest.mark.skipif(not has_c_compiler(), reason="no C compiler"),
]


def of_program() -> pages.Page:
    return pages.explanation(module(MODEL), profile(MODEL), SOURCES)


def of_stages() -> pages.Page:
    after = module(MODEL.replace("tanh(", "sine("))
    stages = [pages.Stage("input", module(MODEL)), pages.Stage("bad", after)]
    return pages.stages("model", stages, pages.Blame(1, "active", "by bad: 2 is not 1"))


def of_findings() -> pages.Page:
    wrong = found("xla", "wrong result", blamed="abs(s32) -> s32", wrong=[["[0]", "1", "2", "3"]])
    campaign = {"directory": "runs/a", "facts": {"seed": "7"}, "counts": {"xla: holds": 60},
                "coverage": {"add f32": 70}, "growth": [(0.0, 0, 0), (1800.0, 40, 1)]}  # fmt: skip
    return pages.index("Found", [campaign], [wrong])


PAGES: dict[str, Callable[[], pages.Page]] = {
    "program": of_program, "values": page_with_values, "stages": of_stages,
    "findings": of_findings,
}  # fmt: skip
# The roles of what is used or gone to, as chromium tells them.
USED = frozenset(
    (
        "application",
        "button",
        "combobox",
        "listbox",
        "option",
        "region",
        "searchbox",
        "slider",
        "tab",
    )
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as driver:
        started = Browser(driver)
        yield started
        started.close()
        assert started.faults == []


@pytest.mark.skipif(not find_spec("axe_playwright_python"), reason="no axe-core")
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_barrier_in_any_tab(browser: Browser, name: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = PAGES[name]()
    # In the dark other colours are all that is other.
    for scheme, options in (("light", "{}"), ("dark", "{runOnly: ['color-contrast']}")):
        with browser.open(page, scheme) as (tab, _):
            tab.evaluate(Axe().axe_script)
            for shown in tab.get_by_role("tab").all():
                shown.click()
                found = tab.evaluate(f"axe.run({options}).then(({{violations}}) => violations)")
                told = [(one["id"], node["html"]) for one in found for node in one["nodes"]]
                assert told == [], (scheme, shown.text_content())


@pytest.mark.parametrize("name", PAGES)
def test_chromium_tells_screen_readers_what_there_is(browser: Browser, name: str) -> None:
    with browser.open(PAGES[name]()) as (tab, session):
        roles = set()
        for shown in tab.get_by_role("tab").all():
            shown.click()
            for node in session.send("Accessibility.getFullAXTree")["nodes"]:
                role = node.get("role", {}).get("value")
                if role in USED and not node["ignored"]:
                    roles.add(role)
                    assert node.get("name", {}).get("value", "").strip(), (name, node)
        assert {"button", "tab"} < roles
