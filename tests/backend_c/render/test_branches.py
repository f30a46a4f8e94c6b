"""Selects as branches: the same values, and on each side only what no other line reads."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from conftest import has_c_compiler

from backend_c.render.branches import with_branches

_MAIN = """
int main(void) {
    for (int i = -40; i <= 40; ++i) {
        const float x = (float)i * 0.37f;
%s    }
    return 0;
}
"""


def _function(name: str, draw: random.Random) -> str:
    """Draw a function of sums, comparisons and selects, as functions of elements are written."""
    lines: list[str] = []
    floats = ["x"]

    def line(kind: str, value: str) -> str:
        result = f"{kind[-1] if kind == 'hlo_pred' else 'f'}{len(lines)}".replace("d", "h")
        lines.append(f"    const {kind} {result} = {value};")
        return result

    def value(depth: int) -> str:
        if depth == 0 or draw.random() < 0.1:
            return draw.choice([*["x"] * 9, draw.choice(floats)])  # also of another side
        left, right = value(depth - 1), value(depth - 1)
        if draw.random() < 0.4:
            condition = line("hlo_pred", f"{value(depth // 2)} > 0.5f")
            text = f"{condition} ? {left} : {draw.choice([right, right, '0.5f'])}"
        else:
            text = f"{left} {draw.choice('+-')} {right}"
        floats.append(line("float", text))
        return floats[-1]

    result = value(6)
    body = "\n".join(lines)
    return f"static float {name}(float x) {{\n{body}\n    return {result};\n}}\n"


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_branches_give_the_same_values(tmp_path: Path) -> None:
    draw, texts, tests, branches = random.Random(0), [], "", 0
    for number in range(60):
        text = _function(f"f_{number}", draw)
        branched = with_branches(text).replace(f"f_{number}(", f"g_{number}(")
        branches += branched.count("if (")
        texts += [text, branched]
        tests += f"        if (f_{number}(x) != g_{number}(x)) return 1;\n"
    assert branches > 100
    (tmp_path / "f.c").write_text("typedef _Bool hlo_pred;\n" + "".join(texts) + _MAIN % tests)
    words = ["cc", "-std=c99", "-O0", "-w", "-Werror=uninitialized", "f.c", "-o", "f"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert subprocess.run(["./f"], cwd=tmp_path, check=False).returncode == 0


def test_what_both_sides_read_stays_outside() -> None:
    lines = ["h0 = x > 1.0f", "f1 = x + x", "f2 = f1 + x", "f3 = f2 * f1", "f4 = f3 - x"]
    lines += ["f5 = f4 * f4", "f6 = x * f1", "f7 = h0 ? f5 : f6"]
    text = "float f(float x) {\n"
    for line in lines:
        text += f"    const {'hlo_pred' if line[0] == 'h' else 'float'} {line};\n"
    text += "    return f7;\n}\n"
    assert with_branches(text).splitlines()[1:] == [
        "    const hlo_pred h0 = x > 1.0f;",
        "    const float f1 = x + x;",
        "    float f7;",
        "    if (h0) {",
        "        const float f2 = f1 + x;",
        "        const float f3 = f2 * f1;",
        "        const float f4 = f3 - x;",
        "        const float f5 = f4 * f4;",
        "        f7 = f5;",
        "    } else {",
        "        const float f6 = x * f1;",
        "        f7 = f6;",
        "    }",
        "    return f7;",
        "}",
    ]
    short = text.replace("f7 = h0 ? f5 : f6", "f7 = h0 ? f2 : f6")
    assert with_branches(short) == short
