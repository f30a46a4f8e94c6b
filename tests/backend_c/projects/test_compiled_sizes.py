"""Check the sizes of compiled C in manifest.json: code, stack, functions of the compiler's
library."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import backend_c
import hlo
from backend_c.projects.elf_sections import read_only_bytes
from hlo.errors import ToolchainError, Unsupported

LAYERS = """HloModule layers
ENTRY e {
  x = f32[1,3] parameter(0)
  w = f32[3,3] constant({{1, 2, 3}, {4, 5, 6.5}, {7, 8, 9}})
  y = f32[1,3] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  total = f32[3,3] constant({{1, 2, 3}, {1, 2, 4}, {1, 2, 5}})
  z = f32[1,3] dot(y, total), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[3,1] reshape(z)
  ROOT t = (f32[3,1], f32[1,3]) tuple(r, y)
}
"""
_MEASURED = ("compiler", "command", "text_bytes", "flash_bytes", "stack_bytes", "library_functions")


def _is_gnu(name: str) -> bool:
    """Return whether a command is gcc: on macOS, `gcc` is clang."""
    if shutil.which(name) is None:
        return False
    told = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
    return "Free Software Foundation" in told


needs_gcc = pytest.mark.skipif(not _is_gnu("gcc"), reason="no gcc")


def _manifest(compiler: str | None, **wanted: object) -> dict[str, object]:
    files = backend_c.emit(
        hlo.parse(LAYERS),
        "embedded",
        compiler=compiler,
        **wanted,  # type: ignore[arg-type]
    )
    found = json.loads(files["manifest.json"])
    assert isinstance(found, dict)
    return found


@needs_gcc
def test_measuring_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gcc writes the call graph of /dev/null to null.ci where it is started."""
    monkeypatch.chdir(tmp_path)
    _manifest("gcc -O1")
    assert not list(tmp_path.iterdir())


@needs_gcc
def test_a_manifest_has_the_bytes_of_code_and_stack() -> None:
    found = _manifest("gcc -O1", name="f")
    assert found["command"] == ["gcc", "-std=c99", "-ffp-contract=off", "-O2", "-O1"]
    kernels = found["kernels"]
    assert isinstance(kernels, list)
    assert [kernel["name"] for kernel in kernels] == ["kernel_0"]
    deepest = max(kernel["stack_bytes"] for kernel in kernels)
    stack, text, flash = found["stack_bytes"], found["text_bytes"], found["flash_bytes"]
    assert isinstance(stack, int) and isinstance(text, int)
    assert 0 < deepest < stack <= 512 and 100 < text < 4096
    # Two weights of 36 bytes, aligned to 8, and what holds them, too.
    assert isinstance(flash, int) and flash == text + 80 and found["weights_bytes"] == 76
    external = _manifest("gcc -O1", external_weights=True)
    read = external["text_bytes"]
    assert isinstance(read, int) and read > text  # with the check
    assert external["flash_bytes"] == read + 16 + 76


def test_nothing_is_told_of_a_compiler_that_was_not_named() -> None:
    found = _manifest(None)
    assert not set(_MEASURED) & set(found)
    assert found["kernels"] == [
        {"name": "kernel_0", "instructions": ["e/y", "e/z"]},  # of the same text
    ]


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no arm-none-eabi-gcc")
def test_soft_floats_are_functions_of_the_library() -> None:
    found = _manifest("arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb")
    assert found["library_functions"] == ["__aeabi_fadd", "__aeabi_fmul"]
    hard = "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"
    assert _manifest(f"arm-none-eabi-gcc {hard}")["library_functions"] == []


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        ("no-such-compiler -O2", "no-such-compiler is no compiler that runs"),
        ("'", 'the compiler "\'" cannot be read: No closing quotation'),
        (" ", "the compiler is empty: name one, as arm-none-eabi-gcc"),
    ],
)
def test_what_is_no_compiler(compiler: str, message: str) -> None:
    with pytest.raises(ToolchainError, match=message):
        _manifest(compiler)


@needs_gcc
def test_what_does_not_compile() -> None:
    with pytest.raises(ToolchainError, match="gcc failed:"):
        _manifest("gcc -include no_such_header.h")
    with pytest.raises(ToolchainError, match="wrote no ELF object"):
        _manifest("gcc -S")


@pytest.mark.skipif(shutil.which("clang") is None, reason="no clang")
def test_a_compiler_without_call_graphs() -> None:
    with pytest.raises(ToolchainError, match="clang does not know -fcallgraph-info=su"):
        _manifest("clang")


@needs_gcc
@pytest.mark.parametrize("word", ["-m32", "-m64"])
def test_sections_of_objects(word: str, tmp_path: Path) -> None:
    """Read-only bytes of 32- and 64-bit objects are as many as binutils' size reports as text."""
    (tmp_path / "f.c").write_text("const int f[9] = {1}; int g(int x) { return f[x & 7]; }\n")
    command = ["gcc", word, "-c", "f.c", "-o", "f.o"]
    if subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"gcc does not take {word}")
    told = subprocess.run(["size", "f.o"], cwd=tmp_path, capture_output=True, text=True, check=True)
    content = (tmp_path / "f.o").read_bytes()
    assert read_only_bytes(content) == int(told.stdout.splitlines()[1].split()[0])
    (tmp_path / "f.c").write_text("int f[9] = {1};\n")
    subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(ToolchainError, match="made variables of constants"):
        read_only_bytes((tmp_path / "f.o").read_bytes())
    with pytest.raises(ToolchainError, match="no ELF object"):
        read_only_bytes(b"\xcf\xfa\xed\xfe")


@pytest.mark.parametrize("target", ["openmp", "cuda"])
def test_other_targets_are_not_measured(target: str) -> None:
    with pytest.raises(Unsupported, match="compiler is for the target embedded"):
        backend_c.emit(hlo.parse(LAYERS), target, compiler="gcc")
