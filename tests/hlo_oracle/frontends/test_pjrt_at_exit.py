"""Calls of the plugin while Python ends, from the threads of its client."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, has_c_compiler

# The functions of the table are replaced, in a process of its own: what was called is counted.
SCRIPT = """
import ctypes, threading
from hlo_oracle.frontends.pjrt import shim

seen = []
here = threading.main_thread()
callback = shim._Callback(lambda _: seen.append(threading.current_thread() is here))
loaded = ctypes.CDLL(str(shim.library()))
loaded.GetPjrtApi()
table = shim._Shim.in_dll(loaded, "hlo_pjrt")
names = shim.declarations().names
calls = {}
for name in ("Buffer_Destroy", "Client_Compile"):
    number = names.index(name)
    table.python[number] = ctypes.cast(callback, ctypes.c_void_p).value
    calls[name] = shim._Callback(table.entries[number])

def both():
    for call in calls.values():
        thread = threading.Thread(target=call, args=(None,))
        thread.start()
        thread.join()
        call(None)

both()
ctypes.CFUNCTYPE(None)(table.end)()
both()
print(seen)
"""

# Functions of atexit are called last to first: this one after the plugin's own.
COMPUTES = """
import atexit

@atexit.register
def compute():
    print(float(jnp.cos(x).sum()), flush=True)

import jax.numpy as jnp
x = jnp.arange(4.0)
"""


def test_releases_of_other_threads_do_nothing_once_python_ends() -> None:
    """A thread that waits for Python's lock when Python ends would end the process."""
    done = _ran(SCRIPT)
    # Release, compilation: by another thread and by this one, before the end and after it.
    seen = [*(False, True, False, True), *(True, False, True)]
    assert (done.stdout, done.returncode) == (f"{seen}\n", 0), done.stderr


@pytest.mark.skipif(not has_c_compiler(), reason="compiles C")
def test_a_function_of_atexit_computes(tmp_path: Path) -> None:
    """jaxlib compiles in a thread of its own, and takes a call that does nothing for a program; a
    new program takes a C compiler, and Python starts no more threads to run it in."""
    pytest.importorskip("jax")
    done = _ran(COMPUTES, JAX_PLATFORMS="hlo_oracle", XDG_CACHE_HOME=str(tmp_path))
    assert (done.stdout[:6], done.returncode) == ("0.1341", 0), done.stderr


def _ran(script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True
    )
