"""Pictures without a browser, and traces: well formed whatever names say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import ROOT, has_c_compiler
from hypothesis import given
from hypothesis import strategies as st
from page_examples import HOSTILE, MODEL, NAMES, module, profile

import pages
from hlo.errors import ArgumentError
from hlo_oracle.command.main import main

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("text", [MODEL, HOSTILE], ids=["model", "hostile"])
def test_a_picture_is_xml_with_a_box_for_each_instruction(text: str) -> None:
    picture = ElementTree.fromstring(pages.svg(module(text)))
    boxes = picture.findall(f".//{SVG}rect[@class='node']")
    assert len(boxes) == len(module(text).entry.instructions)
    names = [element.text or "" for element in picture.findall(f".//{SVG}text")][::2]
    assert all(len(name) <= 30 for name in names)
    assert not {"script", "img"} & {element.tag.removeprefix(SVG) for element in picture.iter()}


def test_text_for_graphviz_quotes_names() -> None:
    text = pages.dot(module(HOSTILE))
    strings = re.findall(r'"(?:[^"\\]|\\.)*"', text)
    rest = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert not re.search(r"[<\"]|hacked", rest.replace("->", ""))
    assert any(string.startswith(f'"{NAMES[0][:20]}') for string in strings)
    assert text.count(" -> ") == 4
    with pytest.raises(ArgumentError, match="no computation 'nothing': there are main"):
        pages.dot(module(HOSTILE), "nothing")
    assert '"add' in pages.dot(module(MODEL), "add")


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_a_trace_has_loops_around_what_runs_in_them() -> None:
    # Elements change places at each trip: the loop is no kernel.
    explained = profile(MODEL.replace("add(x.1, x.1),", "reverse(x.1), dimensions={0},"))
    with pytest.raises(ArgumentError, match="was not measured"):
        pages.trace(explained)
    times = [(0.5, 1) if row.is_kernel else (0.0, 1) for row in explained.rows]
    timed = explained.timed(times, 1.0, 1, 0.0)
    events: Any = json.loads(json.dumps(pages.trace(timed)))["traceEvents"]
    steps = [event for event in events if event["ph"] == "X"]
    assert len(steps) == len(timed.rows)
    (loop,) = [event for event in steps if event["cat"] == "control"]
    inside = [event for event in steps if loop["ts"] <= event["ts"] < loop["ts"] + loop["dur"]]
    depth = [row.depth for row in timed.rows]
    assert len(inside) == 1 + sum(d > 0 for d in depth)
    last = max(event["ts"] + event["dur"] for event in steps)
    assert last == pytest.approx(0.5e6 * len(timed.kernels))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@given(st.lists(st.floats(0, 1e-3), min_size=20, max_size=20))
def test_no_events_of_a_trace_overlap_in_part(seconds: list[float]) -> None:
    """Perfetto drops those that do, in its whole nanoseconds."""
    explained = profile(MODEL.replace("add(x.1, x.1),", "reverse(x.1), dimensions={0},"))
    rows = zip(explained.rows, seconds, strict=False)
    times = [(taken if row.is_kernel else 0.0, 1) for row, taken in rows]
    text = json.dumps(pages.trace(explained.timed(times, 1.0, 1, 0.0)), allow_nan=False)
    ends: list[int] = []
    for event in json.loads(text)["traceEvents"][2:]:
        begin, took = round(1000 * event["ts"]), round(1000 * event["dur"])
        assert abs(begin - 1000 * event["ts"]) < 1e-6 > abs(took - 1000 * event["dur"])
        while ends and ends[-1] <= begin:
            ends.pop()
        assert not ends or begin + took <= ends[-1]
        ends.append(begin + took)


def test_the_commands_write_what_the_name_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = str(ROOT / "examples" / "while_loop.hlo")
    for form, begin in ((".svg", "<svg"), (".dot", "digraph"), (".html", "<!doctype html>")):
        file = tmp_path / f"x{form}"
        assert main(["graph", program, "-o", str(file)]) == 0
        assert file.read_text().startswith(begin)
        assert capsys.readouterr().out == f"{file}\n"
    assert main(["graph", program, "-o", str(tmp_path / "x.png")]) == 2
    assert "a name that ends in .svg, .dot or .html" in capsys.readouterr().err
    assert main(["opt", program, "--html", str(tmp_path / "o.html")]) == 0
    assert '"slider":true' in (tmp_path / "o.html").read_text()
    assert main(["explain", program, "--trace", str(tmp_path / "t.json")]) == 2
    assert "--trace needs --measure" in capsys.readouterr().err


def test_the_page_of_a_dump_opens_on_the_guilty_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "HloModule m\nENTRY e {{\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] {}(x)\n}}\n"
    files = [tmp_path / "0.hlo", tmp_path / "1.hlo", tmp_path / "2.hlo"]
    for file, opcode in zip(files, ("negate", "negate", "abs")):
        file.write_text(text.format(opcode))
    assert main(["bisect", *map(str, files), "--html", str(tmp_path / "pages")]) == 1
    (page,) = (tmp_path / "pages").iterdir()
    assert capsys.readouterr().err == f"{page}\n"
    shown = page.read_text()
    assert '"guilty":1' in shown and '"marked":"r"' in shown and '"title":"2 ' in shown
