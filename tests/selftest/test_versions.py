"""Ways from JAX into this project, with the version of JAX that is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("jax")

from fuzz.peers import jaxlib_modules
from hlo.errors import Error
from selftest.versions.__main__ import outcomes_of
from selftest.versions.doors import tried
from selftest.versions.jax_doors import DOORS


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", DOORS)
def test_every_door_opens(name: str) -> None:
    assert tried(DOORS[name]) == ""


def test_an_environment_without_jax_is_told(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ImportError: no jax' >&2\nexit 1\n")
    python.chmod(0o755)
    assert dict(outcomes_of(python, "jax")) == {"all": "ImportError: no jax"}


def test_a_door_that_ends_python_is_told(tmp_path: Path) -> None:
    """Its process ends; the doors behind it are tried in another one."""
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        "case $3 in --list) printf 'one\\ntwo\\nthree\\n'; exit 0;; esac\n"
        "shift 2\n"
        'for door in "$@"; do\n'
        "  test $door = two && exit 3\n"
        '  echo "{\\"door\\": \\"$door\\", \\"failed\\": \\"\\"}"\n'
        "done\n"
    )
    python.chmod(0o755)
    found = dict(outcomes_of(python, "jax"))
    assert found == {"one": "", "two": "exit status 3", "three": ""}


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ({"xla_extension"}, ("xla_extension", "xla_extension")),  # up to 0.5
        ({"_jax"}, ("_jax", "_jax")),  # from 0.6 on
        ({"_hlo", "_jax"}, ("_hlo", "_jax")),  # from 0.10.1 on
    ],
)
def test_jaxlib_of_any_version(
    modules: set[str], expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def imported(name: str) -> ModuleType:
        module = ModuleType(name)
        last = name.rpartition(".")[2]
        if last not in modules:
            raise ImportError(name)
        if last != "_jax" or "_hlo" not in modules:
            module.HloModule = None  # type: ignore[attr-defined]
        module.mlir = None  # type: ignore[attr-defined]
        return module

    monkeypatch.setattr(jaxlib_modules, "import_module", imported)
    names = (jaxlib_modules.of_hlo.__wrapped__(), jaxlib_modules.of_mlir.__wrapped__())
    assert tuple(module.__name__.rpartition(".")[2] for module in names) == expected


def test_an_unknown_jaxlib_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxlib_modules, "import_module", lambda name: import_module("sys"))
    with pytest.raises(Error, match=r"jaxlib .* has HloModule in none of the modules"):
        jaxlib_modules.of_hlo.__wrapped__()
