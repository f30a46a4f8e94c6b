"""Pages as text: everything is in them, nothing of it can act."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, has_c_compiler
from hypothesis import HealthCheck, given, settings
from page_examples import HOSTILE, MODEL, NAMES, SOURCES, TAG, found, module, profile

import backend_c
import fuzz
import hlo
import pages
from hlo.errors import Error
from hlo.module import Module
from pages.html_file import embedded
from pages.views import view

needs_c = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


class Blocks(HTMLParser):
    """Collect the tags of a page, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        assert not {"onload", "onerror", "onclick", "style"} & given.keys()
        assert given.get("src") is None and (given.get("href") in (None, "data:,"))
        if given.get("http-equiv"):
            self.policy = given["content"] or ""
        self.last = given.get("type") or tag

    def handle_data(self, data: str) -> None:
        if self.tags and self.last in ("module", "style", "application/json"):
            self.texts.setdefault(self.last, data)


def data_of(page: pages.Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Blocks(page.text).texts["application/json"])
    return found


def test_hostile_text_stands_in_the_data_alone() -> None:
    page = pages.explanation(module(HOSTILE))
    blocks = Blocks(page.text)
    ordinary = Blocks(pages.explanation(module(MODEL)).text)
    assert blocks.tags == ordinary.tags
    assert page.text.count(TAG) == 0 and "hacked=1</" not in page.text
    assert [*data_of(page)["views"][0]["instructions"]["name"]] == [*NAMES]
    assert data_of(page)["views"][0]["instructions"]["operation"][0] == TAG


@pytest.mark.parametrize(
    "page",
    [pages.explanation(module(HOSTILE)), pages.index(TAG, [], [found(TAG, TAG, program=HOSTILE)])],
    ids=["program", "index"],
)
def test_only_the_code_of_the_page_may_run_and_nothing_may_be_asked_for(page: pages.Page) -> None:
    blocks = Blocks(page.text)
    assert page.text.count(TAG) == 0
    rules = dict(rule.strip().split(" ", 1) for rule in blocks.policy.split(";"))
    assert rules["default-src"] == "'none'" and "connect-src" not in rules
    for block, rule in (("module", "script-src"), ("style", "style-src")):
        digest = hashlib.sha256(blocks.texts[block].encode()).digest()
        assert rules[rule] == f"'sha256-{base64.b64encode(digest).decode()}'"
    for text in (blocks.texts["module"], blocks.texts["style"]):
        assert not re.search(
            r"innerHTML|insertAdjacentHTML|document\.write|eval\(|https?://(?!www.w3)", text
        )


@settings(suppress_health_check=list(HealthCheck), max_examples=25)
@given(fuzz.modules())
def test_a_view_has_every_instruction_in_text_and_graph(drawn: Module) -> None:
    found: Any = json.loads(embedded(view("as written", drawn)))
    columns = found["instructions"]
    expected = [i for c in drawn.computations for i in c.instructions]
    assert columns["name"] == [i.name for i in expected]
    text = hlo.format(drawn, large_constants=False)
    for name, opcode, rest in zip(columns["name"], columns["opcode"], columns["rest"]):
        assert f" {opcode}{rest}" in text, name
    shown = sorted(i for graph in found["graphs"] for i in graph["instruction"])
    assert shown == list(range(len(expected)))
    for graph in found["graphs"]:
        assert all(
            0 <= inner < len(found["graphs"]) for each in graph["inner"].values() for inner in each
        )


@needs_c
def test_kernels_are_nodes_that_open_on_what_they_compute() -> None:
    data = data_of(pages.explanation(module(MODEL), profile(MODEL), SOURCES))
    compiled = data["views"][data["compiled"]]
    names = compiled["instructions"]["name"]
    rows = data["kernels"]["rows"]
    (softmax,) = [row for row in rows if row["kind"] == "rows"]
    opcodes = compiled["instructions"]["opcode"]
    assert "reduce" in [opcodes[i] for i in softmax["members"]]
    (dot,) = [row for row in rows if row["kind"] == "dot"]
    assert "tanh" in [opcodes[i] for i in dot["members"]]
    graph = compiled["graphs"][compiled["entry"]]
    node = graph["instruction"].index(softmax["instruction"])
    assert rows[graph["kernel"][node]] is softmax
    (inner,) = graph["inner"][str(node)]
    assert set(softmax["members"]) <= set(compiled["graphs"][inner]["instruction"])
    loop = graph["inner"][str(graph["instruction"].index(names.index("loop")))]
    assert sorted(compiled["graphs"][n]["title"] for n in loop) == ["body", "condition"]
    for row in rows:
        if row["function"]:
            text = data["kernels"]["targets"][0]["functions"][row["function"]]
            assert f"void {row['function']}(" in text
    assert "dot" not in [opcodes[i] for i in graph["instruction"]]


@needs_c
def test_a_kernel_says_that_a_library_may_compute_it() -> None:
    text = "HloModule m\nENTRY e {{ x = {0} parameter(0)\n ROOT d = {0} dot(x, x), {1} }}"
    numbers = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    for side, is_large in ((256, True), (64, False)):
        product = hlo.parse(text.format(f"f32[{side},{side}]", numbers))
        listing = backend_c.listing(product, "cuda", "fast", cublaslt=True)
        page = pages.explanation(product, profile(MODEL), targets={"cuda": listing})
        (kernel,) = data_of(page)["kernels"]["targets"][1]["functions"].values()
        assert kernel.endswith("/* by cuBLASLt in its stead, where that is found */\n") == is_large
        (step,) = listing.steps
        assert step.library == ("cuBLASLt" if is_large else "")


@needs_c
def test_the_workspace_over_time_has_no_two_arrays_in_one_place() -> None:
    data = data_of(pages.explanation(module(MODEL), profile(MODEL)))["kernels"]
    lives = data["lifetimes"]
    assert lives and all(i >= 0 for i, *_ in lives)
    for n, (_, offset, size, first, last) in enumerate(lives):
        assert 0 <= offset <= offset + size <= data["memory"]["workspace"]
        assert 0 <= first <= last < len(data["rows"])
        for _, other, other_size, begin, end in lives[:n]:
            together = first <= end and begin <= last
            assert not (together and offset < other + other_size and other < offset + size)


def test_a_page_is_small_and_its_source_is_what_the_user_named(tmp_path: Path) -> None:
    page = pages.explanation(module(MODEL))
    data = len(Blocks(page.text).texts["application/json"])
    assert len(page.text) - data < 120_000
    places = data_of(page)["views"][0]["instructions"]["places"]
    assert places == ["model.py:4", "model.py:3"]
    (tmp_path / "model.py").write_text("\n".join(SOURCES["model.py"]))
    (tmp_path / "other.py").write_text("secret")
    files = [tmp_path / "model.py", tmp_path / "other.py"]
    assert pages.source_lines(module(MODEL), files) == SOURCES
    with pytest.raises(Error, match=r"missing\.py: No such file"):
        pages.source_lines(module(MODEL), [tmp_path / "missing.py"])


def test_a_notebook_shows_a_page_in_a_frame_without_rights(tmp_path: Path) -> None:
    page = pages.explanation(module(MODEL))
    frame = page._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts"') and frame.count("<") == 2
    assert page.write(tmp_path / "p.html").read_text() == page.text
    assert (ROOT / "pages" / "py.typed").exists()
