"""Programs that are compiled together are each themselves."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from conftest import has_c_compiler, require_compiler

import hlo
from backend_c.native.executable import Executable
from backend_c.native.toolchain import Compiler
from fuzz.compilers import quick_compilers
from fuzz.compilers.combined_programs import compiled
from hlo.errors import Unsupported

_TEXTS = (
    "HloModule m\nENTRY e {\n  x = f32[3] parameter(0)\n  ROOT r = f32[3] negate(x)\n}\n",
    "HloModule m, replica_count=2\nENTRY e {\n  ROOT r = u32[] replica-id()\n}\n",
    "HloModule m\nENTRY e {\n  a = s32[] constant(0)\n  b = s32[] constant(9)\n"
    "  ROOT r = s32[4] rng(a, b), distribution=rng_uniform\n}\n",
)


@pytest.mark.parametrize("name", ["", "tcc", "clang", "gcc"])
@pytest.mark.parametrize("of", [quick_compilers.quick, quick_compilers.thorough])
def test_together_as_alone(
    of: Callable[[Mapping[str, str]], Compiler],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name:
        require_compiler(name)
    elif not has_c_compiler():
        pytest.skip("no C compiler")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compiler = of({**os.environ, "HLO_CC": name})
    negate, refused, random = compiled([hlo.parse(text) for text in _TEXTS], compiler)
    assert isinstance(negate, Executable) and isinstance(random, Executable)
    assert isinstance(refused, Unsupported)
    assert negate(np.arange(3, dtype=np.float32)).tolist() == [0, -1, -2]
    alone, _ = compiled([hlo.parse(_TEXTS[2])] * 2, compiler)
    assert isinstance(alone, Executable)
    assert (random() == alone()).all()  # the numbers of the first rng of a run
    assert compiled([hlo.parse(_TEXTS[1])], compiler)[0].__class__ is Unsupported
    assert not [*tmp_path.iterdir()], "files are left"
