"""Check that ``pip install`` gives the seven packages with their data, and nothing else."""

from __future__ import annotations

import email.parser
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGES = ("hlo", "interp", "backend_c", "bisect_dump", "fuzz", "pages", "hlo_oracle")
DATA = {  # what is read at run time beside Python
    "backend_c/runtime/hlo_kernels.h",
    "fuzz/compilers/driver.c",
    "fuzz/compilers/threads.c",
    "fuzz/worker_pool/stack.c",
    "fuzz/report/reproduce.txt",
    "pages/assets/page.html",
    "pages/assets/main.js",
}
# Every package and the runtime headers, from the wheel in PYTHONPATH alone.
USE = """
import os
import backend_c, bisect_dump, fuzz, hlo, hlo_oracle.command.main, interp, pages
for module in (backend_c, bisect_dump, fuzz, hlo, hlo_oracle, interp, pages):
    assert module.__file__.startswith(os.environ["PYTHONPATH"]), module
module = hlo.parse("HloModule m ENTRY e { x = f32[2] parameter(0) ROOT r = f32[2] tanh(x) }")
assert b"HLO_FUNCTION float hlo_fused_f32(" in backend_c.emit(module, "embedded")["module.c"]
assert "Content-Security-Policy" in pages.explanation(module).text
hlo_oracle.command.main.main(["fuzz", "--list"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, unpacked."""
    builders = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def files(root: Path) -> set[str]:
    paths = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)) for path in paths if "__pycache__" not in path.parts}


def test_the_wheel_has_every_file_of_its_packages(wheel: Path) -> None:
    expected = {f"{package}/{name}" for package in PACKAGES for name in files(ROOT / package)}
    found = {name for name in files(wheel) if ".dist-info/" not in name}
    assert found == expected
    assert expected >= DATA


def test_every_package_is_typed() -> None:
    for package in PACKAGES:
        assert (ROOT / package / "py.typed").read_bytes() == b""


def test_the_metadata(wheel: Path) -> None:
    (information,) = wheel.glob("*.dist-info")
    metadata = email.parser.Parser().parsestr((information / "METADATA").read_text())
    assert metadata["Name"] == "hlo-oracle"
    assert metadata["Requires-Python"] == ">=3.11"
    classifiers = metadata.get_all("Classifier", [])
    known = pytest.importorskip("trove_classifiers").classifiers
    assert classifiers == sorted(classifiers) and known.issuperset(classifiers)
    assert "jax" in metadata["Keywords"].lower() and metadata["Author"] is not None
    links = re.findall(r"\]\((.*?)\)", metadata.get_payload())
    assert all(link.startswith("https://") for link in links)
    assert "hlo = hlo_oracle.command.main:main" in (information / "entry_points.txt").read_text()
    assert (information / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_links_of_the_long_description_lead_to_the_repository() -> None:
    hatch_build = pytest.importorskip("hatch_build")
    text = "[a](docs/a.md#b) and [c](https://c.d), [] (e)"
    home = "https://example.org/hlo-oracle"
    made = hatch_build.with_absolute_links(text, home)
    assert made == f"[a]({home}/blob/main/docs/a.md#b) and [c](https://c.d), [] (e)"
    assert hatch_build.with_absolute_links(text, None) == "a and [c](https://c.d), [] (e)"


def test_the_wheel_works_alone(wheel: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(wheel)},
        check=True,
    )
