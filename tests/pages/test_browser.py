"""Pages in a browser: what belongs together lights up, nothing is asked of a network, anyone can
use it. They are skipped without Debian's chromium, or playwright (pip install '.[browser]')."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import has_c_compiler
from page_examples import (
    HOSTILE,
    MODEL,
    NAMES,
    SOURCES,
    TAG,
    chain,
    found,
    module,
    page_with_values,
    profile,
)

import backend_c
import pages
from selftest.browser import CHROMIUM, DRAWN, NAMELESS, wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium"),
    pytest.mark.skipif(not has_c_compiler(), reason="no C compiler"),
]

Open = Callable[..., Any]
LIT = """[...document.querySelectorAll('{} [role=tabpanel]:not([hidden]) .lit')]
  .map(row => row.textContent)"""
# Where the middle of the head of a node is on the screen.
PLACE = """name => {
  const { picture, selected } = window.page;
  const node = picture.scene.nodes.find(node => selected.program.name[node.i] === name);
  const box = picture.canvas.getBoundingClientRect();
  return [box.left + (node.x + node.width / 2 - picture.x) * picture.scale,
          box.top + (node.y + 12 - picture.y) * picture.scale];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM)
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open a page; at the end nothing has been logged, asked for, or shown in a dialog."""
    events: list[str] = []
    contexts = []

    def open_page(made: pages.Page, width: int = 1280, scheme: str = "light") -> Any:
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        file = made.write(tmp_path / "page.html").as_uri()
        page.on("console", lambda message: events.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: events.append(str(error)))
        page.on("dialog", lambda dialog: events.append(dialog.message))
        page.on("request", lambda r: r.url in (file, "data:,") or events.append(r.url))
        page.goto(file)
        wait_until(page, DRAWN)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert events == []


def lit(page: Any, panel: str) -> list[str]:
    """Return the lines of a panel that are lit."""
    found: list[str] = page.evaluate(LIT.format(panel))
    return found


def explained() -> pages.Page:
    others = {name: backend_c.listing(module(MODEL), name) for name in ("embedded", "cuda")}
    return pages.explanation(module(MODEL), profile(MODEL), SOURCES, targets=others)


def test_what_belongs_together_lights_up(opened: Open) -> None:
    page = opened(explained())
    page.get_by_role("tab", name="C", exact=True).click()
    page.get_by_role("option", name="active = ").click()
    assert all("kernel_1(" not in line for line in lit(page, ".selection"))
    assert any("hlo_tanh" in line for line in lit(page, ".selection"))
    page.get_by_role("tab", name="Source").click()
    (line,) = lit(page, ".text")
    assert line.endswith("  g(y)")
    page.get_by_role("tab", name="Kernels").click()
    (row,) = lit(page, ".picture")
    assert "rows" in row
    # From a line of source to the product, from C to the text, from a row to the graph.
    page.get_by_role("option", name="y = x @ w + b").click()
    assert [("dot" in row, "rows" in row) for row in lit(page, ".picture")] == [
        (True, False),
        (False, True),
    ]
    page.get_by_role("option", name="void kernel_1(").click()
    page.get_by_role("tab", name="HLO").click()
    assert any(line.strip().startswith("scaled = ") for line in lit(page, ".text"))
    page.get_by_role("row", name="dot").click()
    assert [line.split()[0] for line in lit(page, ".text")] == ["product"]
    page.get_by_role("tab", name="Details").click()
    assert "a dot is a kernel of its own" in page.inner_text(".details")


def test_loops_light_up_with_their_lines_of_c_in_every_target(opened: Open) -> None:
    page = opened(explained())
    page.get_by_role("option", name="active = ").click()
    page.get_by_role("tab", name="Loops").click()
    # One of the loops of the kernel: not those of the division after it.
    assert ["active" in line for line in lit(page, ".selection")] == [True]
    assert page.locator(".selection .line.around").count() == 3  # kernel, rows, blocks
    page.locator(".line.lit", has_text="by lanes").filter(has_text="product").first.click()
    (loop,) = lit(page, ".selection")
    assert "by lanes" in loop and "a1 product" in loop
    page.get_by_role("tab", name="Details").click()
    assert "iterations" in page.inner_text(".details") and "512" in page.inner_text(".details")
    page.get_by_role("tab", name="C", exact=True).click()
    lines = lit(page, ".selection")
    assert " for (" in lines[0] and lines[-1].strip().endswith("}") and len(lines) > 2
    page.get_by_label("Target of C").select_option("CUDA")
    assert any("__global__ void kernel" in line for line in lit(page, ".selection"))
    page.locator(".line.lit", has_text="threadIdx.x").first.click()
    assert " for (" in lit(page, ".selection")[0]
    assert any(line.strip().startswith("active = ") for line in lit(page, ".text"))
    page.get_by_role("tab", name="Loops").click()
    (loop,) = lit(page, ".selection")
    assert "by threads" in loop
    page.get_by_label("Target of Loops").select_option("Embedded C")
    assert all(" by " not in line for line in lit(page, ".selection"))


def test_a_line_of_c_and_the_instructions_that_it_computes_light_up(opened: Open) -> None:
    page = opened(explained())
    page.get_by_role("tab", name="C", exact=True).click()
    page.locator("[id^=list-c-]", has_text="hlo_tanh").first.click()
    assert {line.split()[0] for line in lit(page, ".text")} == {"active", "biased", "biases"}
    tanh = lit(page, ".selection")
    assert any("hlo_tanh" in line for line in tanh) and not any("r0[" in line for line in tanh)
    page.get_by_role("option", name="scaled = ").click()
    (store,) = [line for line in lit(page, ".selection") if "r0[" in line]
    page.get_by_label("Target of C").select_option("Embedded C")
    assert any("r0[" in line for line in lit(page, ".selection"))
    page.get_by_role("tab", name="Details").click()
    assert " of kernel_1, Embedded C" in page.inner_text(".selection .details")
    page.get_by_role("tab", name="C", exact=True).click()
    # The head of a loop is all of it, a kernel all of its lines.
    page.get_by_label("Target of C").select_option("OpenMP C")
    page.locator("[id^=list-c-]", has_text="hlo_tanh").first.click()
    page.locator("[id^=list-c-].around").last.click()
    assert " for (" in lit(page, ".selection")[0]
    assert store not in lit(page, ".selection")
    page.get_by_role("tab", name="Kernels").click()
    page.get_by_role("row", name="rows").click()
    assert "kernel_1(" in lit(page, ".selection")[0] and store in lit(page, ".selection")


def test_the_graph_is_clicked_opened_and_searched(opened: Open) -> None:
    page = opened(explained())
    page.mouse.click(*page.evaluate(PLACE, "product"))
    assert [line.split()[0] for line in lit(page, ".text")] == ["product"]
    page.mouse.move(*page.evaluate(PLACE, "scaled"))
    assert "kernel #1" in page.inner_text("#hover")
    before = page.evaluate("page.picture.scene.nodes.length")
    page.mouse.dblclick(*page.evaluate(PLACE, "scaled"))
    assert page.evaluate("page.picture.scene.nodes.length") > before
    page.get_by_role("button", name="Show all").click()
    page.mouse.dblclick(*page.evaluate(PLACE, "loop"))
    assert page.evaluate("page.picture.scene.titles.map(t => t[0]).sort()") == ["body", "condition"]
    page.keyboard.press("/")
    page.keyboard.type("tanh")
    page.keyboard.press("Enter")
    assert page.inner_text(".details h2") == "active"
    page.get_by_role("button", name="Path from here").click()
    page.get_by_role("button", name="rows").first.click()
    page.get_by_role("button", name="Path from active").click()
    assert "Both are computed in kernel #1" in page.inner_text(".details")
    page.get_by_label("Stage of the program").select_option("as written")
    assert page.inner_text(".details h2") == "rows"


def test_keys_alone_reach_everything(opened: Open) -> None:
    page = opened(explained())
    page.focus("#graph")
    page.keyboard.press("ArrowDown")
    first = page.inner_text(".details h2")
    page.keyboard.press("ArrowDown")
    assert first != page.inner_text(".details h2") and first in page.inner_text(".details")
    assert page.inner_text("#said")
    page.get_by_role("tab", name="Graph").focus()
    for name in ("Kernels", "Time", "Memory"):
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.textContent") == name
        assert page.evaluate(NAMELESS) == []
        assert page.locator(".picture [tabindex='0'][role=button], .picture tr[tabindex]").count()
    page.locator("g[data-i]").last.focus()
    page.keyboard.press("Enter")
    assert len(lit(page, ".text")) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_small_screen_in_both_themes(opened: Open, scheme: str) -> None:
    page = opened(explained(), 400, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    bright = page.evaluate(
        "parseInt(getComputedStyle(document.body).backgroundColor.slice(4)) > 128"
    )
    assert bright == (scheme == "light")
    assert page.evaluate(NAMELESS) == []
    page.get_by_role("button", name="Theme: auto").click()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_hostile_names_are_text(opened: Open) -> None:
    page = opened(pages.explanation(module(HOSTILE)))
    for n, name in enumerate(NAMES):
        page.evaluate("n => window.page.selected.choose([n], {})", n)
        shown = page.locator(".details h2").first.text_content()
        assert shown == page.evaluate("n => window.page.selected.program.name[n]", n) == name
    page.mouse.move(*page.evaluate(PLACE, NAMES[0]))
    for tab in page.get_by_role("tab").all():
        tab.click()
    assert page.evaluate("typeof hacked") == "undefined"
    assert page.locator("img").count() == 0 and page.locator("body svg script").count() == 0


def test_of_a_large_program_only_what_is_in_view_is_drawn(opened: Open) -> None:
    page = opened(pages.explanation(module(chain(3000))))
    assert page.evaluate("window.page.picture.scene.nodes.length") == 3000
    assert 0 < page.evaluate("window.page.picture.painted") < 200
    assert page.locator(".line").count() < 120
    page.evaluate("window.page.selected.choose([2500], {})")
    assert any("x2500 = " in line for line in lit(page, ".text"))


def test_a_slider_shows_what_each_stage_changed_and_who_is_guilty(opened: Open) -> None:
    before, after = module(MODEL), module(MODEL.replace("negate", "abs").replace("tanh(", "sine("))
    stages = [pages.Stage("input", before), pages.Stage("same", before), pages.Stage("bad", after)]
    page = opened(
        pages.stages("model", stages, pages.Blame(2, "active", "by bad: 2 is not 1")), 400
    )
    assert page.inner_text(".stage-line").endswith("by bad: 2 is not 1")
    assert page.inner_text(".text .bad") == "active" and "1 changed" in page.inner_text(".stages")
    assert page.inner_text(".details h2") == "active"
    page.get_by_role("slider", name="Stage").press("ArrowLeft")
    assert page.inner_text(".stage-line").startswith("0 input")
    assert page.locator(".text .bad").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_page_begins_where_the_guilty_instruction_is(opened: Open) -> None:
    before, after = module(chain(300)), module(chain(300).replace("negate", "abs"))
    stages = [pages.Stage("input", before), pages.Stage("bad", after)]
    page = opened(pages.stages("chain", stages, pages.Blame(1, "r", "by bad")), 400)
    x, y = page.evaluate(PLACE, "r")
    box = page.locator("#graph").bounding_box()
    assert box["x"] < x < box["x"] + box["width"] and box["y"] < y < box["y"] + box["height"]


def test_values_and_verdicts_are_shown(opened: Open) -> None:
    page = opened(page_with_values())
    page.evaluate("window.page.selected.step(1, 'test')")
    assert "elements" in page.inner_text(".selection")
    assert page.locator(".histogram").count() == 1
    page.evaluate("page.selected.choose([page.selected.program.byName.get('rows')], {})")
    assert "Value of peer" in page.inner_text(".selection .details")
    assert (
        "none" in page.inner_text(".selection .details")
        and page.locator(".selection .heat-map").count() == 0
    )
    page.evaluate("page.selected.choose([page.selected.program.byName.get('scaled')], {})")
    assert "1 outside" in page.inner_text(".selection .details")
    assert page.locator(".selection .heat-map rect.outside").count() == 1
    assert page.locator(".text .bad").all_inner_texts() == ["doubled", "scaled"]
    page.get_by_role("tab", name="Verdict").click()
    assert "proof <b>" in page.inner_text(".picture")
    assert page.locator(".picture .heat-map rect.outside").count() == 1
    assert "doubled of body, trip 6.\n\nproof <i>" in page.inner_text(".picture")
    page.get_by_role("button", name="doubled").click()
    assert page.inner_text(".selection .details h2") == "doubled"
    page.get_by_role("tab", name="Graph").click()
    assert "contraction" in page.inner_text(".legend")
    for colour in ("values", "deviation"):
        page.get_by_label("Colour shows").select_option(colour)
    wait_until(page, "window.page.picture.worst > 0")
    assert "ulps" in page.inner_text(".legend")


def test_values_of_a_loop_are_shown_trip_by_trip_and_back_goes_back(opened: Open) -> None:
    page = opened(page_with_values())
    page.evaluate("window.page.selected.step(1, 'test')")
    page.get_by_role("option", name="doubled = ").click()
    assert "10 times" in page.inner_text(".selection .details")
    assert page.locator(".range-chart rect").count() == 10
    assert page.locator("figcaption").all_inner_texts()[0].startswith("first (1 of 10)")
    details = page.inner_text(".selection .details")
    assert "begins in\ntrip 4" in details and "first outside\ntrip 6" in details
    assert page.locator(".selection .heat-map rect.outside").count() == 1
    page.evaluate("page.selected.choose([page.selected.program.byName.get('sum')], {})")
    assert "None: add is applied to single elements" in page.inner_text(".selection .details")
    page.get_by_role("option", name="doubled = ").click()
    for name in ("sum", "doubled", "scaled", "model"):
        page.get_by_role("button", name="Back", exact=True).click()
        assert page.locator(".details h2").first.inner_text() == name
    page.get_by_role("option", name="doubled = ").click()
    page.keyboard.press("Backspace")
    assert page.locator(".details h2").first.inner_text() == "model"
    assert page.get_by_role("button", name="Back", exact=True).is_disabled()


def campaign(**more: object) -> dict[str, object]:
    """A campaign as its page has it."""
    counts = {"programs": 90, "xla: holds": 60, f"xla: left out, {TAG}": 28, "xla: violated": 2}
    growth = [(0.0, 0, 0), (1800.0, 40, 1), (7200.0, 90, 2)]
    coverage = {"add f32": 70, "add s4": 1, "tanh f32": 9, "constructor <b>": 1}
    facts = {"seed": "7", "oracles": "xla"}
    common = {"directory": f"runs/{TAG}", "facts": facts, "counts": counts, "coverage": coverage}
    return {**common, "growth": growth, **more}


def test_an_index_has_findings_their_evidence_growth_and_coverage(opened: Open) -> None:
    crash = found("xla", "crash: llvm_util.cc", times=3, seconds=1800.0, program=HOSTILE[:200])
    wrong = found("xla", "wrong result", blamed="abs(s32) -> s32", wrong=[["[0]", "1", "2", TAG]])
    other = found("same-bits", TAG, detail=TAG, issue="# why", facts={"seed": "7"})
    page = opened(pages.index(TAG, [campaign()], [crash, wrong, other]))
    assert page.get_by_role("option", name="crash", exact=False).first.get_attribute("class")
    assert "×3, 30 min" in page.inner_text(".finding-row.lit")
    assert "HloModule" in page.inner_text(".finding .program")
    page.focus(".findings-list")
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".finding td.bad") == "1"
    page.get_by_label("Oracle").select_option("same-bits")
    assert page.locator(".finding-row").count() == 1
    page.locator(".finding-row").click()
    assert page.inner_text(".finding h2") == TAG
    page.get_by_label("Oracle").select_option("")
    page.keyboard.press("/")
    page.get_by_label("Search findings").fill("ABS s32")
    assert page.locator(".finding-row").count() == 1
    page.get_by_label("Search findings").fill("abs llvm_util")
    assert "Nothing is found" in page.inner_text(".findings-list")
    assert page.locator("path.curve").count() == 1
    page.get_by_role("tab", name="Outcomes").click()
    assert page.locator(".outcomes .bar").count() == 3
    page.get_by_role("tab", name="Coverage").click()
    assert page.locator("td[title='add s4: 1']").inner_text() == "1"
    assert "Not drawn: abs" in page.inner_text(".coverage p")
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate("typeof hacked") == "undefined" and page.locator("img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_index_fits_a_small_screen_in_both_themes(opened: Open, scheme: str) -> None:
    finding = found("xla", "k" * 500, wrong=[["x" * 300] * 4], program="p" * 300)
    page = opened(pages.index("n" * 500, [campaign()], [finding]), 400, scheme)
    for tab in page.get_by_role("tab").all():
        tab.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.get_by_role("button", name="Theme: auto").click()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
