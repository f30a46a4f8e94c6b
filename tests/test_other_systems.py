"""Where Windows and macOS lack what Linux has, commands work without it, or say so in a line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from test_architecture import FILES, PEERS, identity

from hlo import operating_system

# Python runs sitecustomize before anything else, also in processes that a command starts. The
# standard library is imported as it is; then what Windows lacks is taken away.
_WITHOUT = """
import ctypes, importlib.util, json, multiprocessing.connection, multiprocessing.context
import multiprocessing.reduction, multiprocessing.util, os, signal, subprocess, sys, tempfile
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for module, names in {
    "os": "fork geteuid getuid killpg pread sched_getaffinity setsid sysconf O_ASYNC",
    "signal": "SIGALRM SIGIO SIGKILL alarm setitimer",
    "multiprocessing.context": "ForkServerContext",
    "multiprocessing.reduction": "DupFd",
}.items():
    for name in names.split():
        delattr(sys.modules[module], name)
"""
_SCRIPT = """
import importlib
for module in MODULES:
    importlib.import_module(module)
from hlo_oracle.command.main import main
for words in COMMANDS:
    print(f"status {main(words)}", flush=True)
"""
_PRODUCT = ("hlo", "interp", "backend_c", "bisect_dump", "fuzz", "hlo_oracle")
_TEXT = "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] negate(x)\n}\n"
_COMMANDS = [
    (["run", "p.hlo", "--seed", "1"], 0, "-1.7291036"),
    (["check", "--no-c", "p.hlo"], 0, "C not run"),
    (["check", "p.hlo"], 2, "C is compiled on Linux and macOS"),
    (["run", "p.hlo", "--timeout", "9"], 2, "hlo: --timeout needs the timers of Unix"),
    (["reduce", "p.hlo", "--oracle", "xla"], 2, "hlo: processes that may crash are run on Linux"),
]


def test_windows(tmp_path: Path) -> None:
    """Every module is imported, programs run, and what does not says why."""
    modules = [
        identity(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for path in FILES
        if identity(path).split("/")[0] in _PRODUCT and identity(path) not in PEERS
    ]
    facts = f"MODULES = {modules!r}\nCOMMANDS = {[words for words, _, _ in _COMMANDS]!r}\n"
    (tmp_path / "sitecustomize.py").write_text(_WITHOUT)
    (tmp_path / "script.py").write_text(facts + _SCRIPT)
    (tmp_path / "p.hlo").write_text(_TEXT)
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-W", "error", "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0 and "Traceback" not in done.stdout, done.stdout
    rest = done.stdout
    for words, status, told in _COMMANDS:
        output, found, rest = rest.partition(f"status {status}\n")
        assert found and told in output, f"{words}: {output}"


def test_what_a_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    there, peak = operating_system.main_memory(), operating_system.peak_memory()
    assert there is not None and peak is not None and 1 << 20 < peak < there
    monkeypatch.setattr(operating_system, "resource", None)
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.delattr(os, "sched_getaffinity")
    assert operating_system.main_memory() is operating_system.peak_memory() is None
    assert operating_system.processors() == os.cpu_count()
