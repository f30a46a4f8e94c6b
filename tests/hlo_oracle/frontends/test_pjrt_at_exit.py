"""Calls of the plugin while Python ends, from the threads of its client."""

from __future__ import annotations

import subprocess
import sys

from conftest import ROOT

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
table.python[0] = ctypes.cast(callback, ctypes.c_void_p).value
call = shim._Callback(table.entries[0])

def both():
    thread = threading.Thread(target=call, args=(None,))
    thread.start()
    thread.join()
    call(None)

both()
ctypes.CFUNCTYPE(None)(table.end)()
both()
print(seen)
"""


def test_other_threads_do_nothing_once_python_ends() -> None:
    """A thread that waits for Python's lock when Python ends would end the process."""
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[False, True, True]\n", 0), done.stderr
