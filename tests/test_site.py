"""The documentation as a site: all pages are in its navigation, the first is true, it builds."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import ROOT, has_c_compiler

NAVIGATION = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
FIRST = (ROOT / "docs" / "index.md").read_text()


def test_every_page_is_in_the_navigation() -> None:
    docs = ROOT / "docs"
    pages = [*docs.glob("*.md"), *docs.glob("evidence/*.md"), docs / "found" / "README.md"]
    named = re.findall(r"([\w/]+\.md)$", NAVIGATION, re.MULTILINE)
    assert sorted(named) == sorted(str(page.relative_to(docs)) for page in pages)


@pytest.mark.skipif(not has_c_compiler() or not find_spec("jax"), reason="no C compiler, or no JAX")
@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", FIRST, re.DOTALL))
def test_the_first_page_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "index.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "0.0, where 0.5 is exact" in printed if "check" in code else "embedded" in code


@pytest.mark.skipif(not find_spec("mkdocs"), reason="no mkdocs")
def test_the_site_builds(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(
        [*command, "--site-dir", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr  # strict: warnings are errors
    api = (tmp_path / "api" / "index.html").read_text()
    assert "static_argnums" in api and "numerics" in api
    assert 'href="../verdict/' in (tmp_path / "checking" / "index.html").read_text()
