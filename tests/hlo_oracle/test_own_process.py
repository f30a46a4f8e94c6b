"""Questions to modules in processes of their own, answered by forks of a server or by new ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from hlo_oracle import own_process
from hlo_oracle.own_process import Died, asked

ANSWERS = """
import os, sys
seen = []
def answer(question):
    exec(question.get("do", ""))
    seen.append(1)
    os.write(1, b"not an answer")
    found = {"x": question["x"], "process": os.getpid(), "asked": len(seen)}
    return found | {"home": os.environ.get("HERE"), "directory": os.getcwd()}
"""
# Asks for what interrupts whoever asks, in the moment in which it begins.
INTERRUPTED = """
import os, sys
from hlo_oracle.own_process import asked
os.environ["ASKER"] = str(os.getpid())
end = (
    "import os, time; open(os.environ['BEGUN'], 'a').write(f'{os.getpid()} ');"
    "os.kill(int(os.environ['ASKER']), 2); time.sleep(60)"
)
for _ in range(8):
    try:
        asked(sys.argv[1], {"do": end})
    except KeyboardInterrupt:
        pass
"""


@pytest.fixture(params=["fork", "new process"])
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module, unlike those of other tests, that answers."""
    name = f"answers_{os.getpid()}_{time.monotonic_ns()}"
    (tmp_path / f"{name}.py").write_text(ANSWERS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    if request.param == "new process":
        monkeypatch.setattr(own_process, "_forked", own_process._run)
    return name


def test_every_question_has_a_process(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked(module, {"x": [1, 2]})
    monkeypatch.setenv("HERE", "there")
    monkeypatch.chdir(tmp_path)
    second = asked(module, {"x": "\u00fc\n"})
    assert isinstance(first, dict) and isinstance(second, dict)
    assert first["x"] == (1, 2) and first["home"] is None
    assert second["x"] == "\u00fc\n" and second["home"] == "there"
    assert second["directory"] == str(tmp_path)
    assert first["asked"] == second["asked"] == 1
    assert len({first["process"], second["process"], os.getpid()}) == 3


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
        pytest.param(
            "os.kill(os.getpid(), 40)",  # of real time
            "killed by signal 40",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux's signals"),
        ),
        ("raise ValueError('no such thing')", "ValueError: no such thing"),
        ("sys.exit(7)", "exit 7"),
        ("os._exit(3)", "exit 3"),
    ],
)
def test_an_end_is_an_answer_and_no_end_of_the_next(module: str, end: str, how: str) -> None:
    assert asked(module, {"x": 1, "do": end}) == Died(how)
    found = asked(module, {"x": 2})
    assert isinstance(found, dict) and found["x"] == 2


def test_questions_of_two_threads_do_not_mix(module: str) -> None:
    found: dict[int, object] = {}

    def ask(number: int) -> None:
        answer = asked(module, {"x": number})
        found[number] = answer["x"] if isinstance(answer, dict) else answer

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n for n in range(4)}


def assert_end(processes: Sequence[str]) -> None:
    """Assert that processes, by number, end within a time in which forks do not end themselves."""
    status = [Path(f"/proc/{number}/status") for number in processes]
    late = time.monotonic() + 30
    while any(file.exists() and "zombie" not in file.read_text() for file in status):
        assert time.monotonic() < late, processes
        time.sleep(0.01)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("module", ["fork"], indirect=True)
class TestForks:
    def test_a_server_that_was_killed_is_replaced(self, module: str) -> None:
        died = asked(module, {"do": "os.kill(os.getppid(), 9)", "x": 1})
        assert isinstance(died, Died)
        asked(module, {"x": 1})
        os.kill(own_process._idle[-1]._process.pid, 9)
        own_process._idle[-1]._process.wait()
        assert not isinstance(asked(module, {"x": 1}), Died)

    def test_a_fork_of_the_asker_has_servers_of_its_own(self, module: str) -> None:
        asked(module, {"x": 1})
        code = (
            "import os\nfrom hlo_oracle.own_process import asked\n"
            f"name = {module!r}\nassert asked(name, {{'x': 1}})['x'] == 1\n"
            "fork = os.fork()\n"
            "assert all(asked(name, {'x': n + fork})['x'] == n + fork for n in range(20))\n"
            "fork and os._exit(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]))\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    def test_ctrl_c_ends_the_fork(self, module: str, tmp_path: Path) -> None:
        """Ctrl-C in the asking process leaves no fork of it running."""
        mark = tmp_path / "asked"
        end = f"import time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
        code = f"from hlo_oracle.own_process import asked; asked({module!r}, {{'do': {end!r}}})"
        asker = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        while not (mark.exists() and mark.read_text()):
            assert asker.poll() is None
            time.sleep(0.01)
        asker.send_signal(signal.SIGINT)
        assert asker.wait(30) != 0
        assert_end([mark.read_text()])

    def test_ctrl_c_ends_a_fork_that_has_just_begun(
        self, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Leave nothing of forks that interrupt the asker at once."""
        begun = tmp_path / "begun"
        monkeypatch.setenv("BEGUN", str(begun))
        subprocess.run([sys.executable, "-c", INTERRUPTED, module], check=True, timeout=60)
        forks = begun.read_text().split()
        assert len(forks) == 8
        assert_end(forks)


# Asks a fork of the process itself, which has imported a module and has changed it.
FROM_A_FORK = """
import json, os, sys
from hlo_oracle import own_process
name = sys.argv[1]
__import__(name).seen.append("here before the fork")
print("not flushed", end="")
own_process.fork_server()
server = own_process._idle[0]._process.pid
endings = ("", "os.kill(os.getpid(), 11)", "raise ValueError('no such thing')", "sys.exit(7)", "")
found = [own_process.asked(name, {"x": 1, "do": end}) for end in endings]
kept = own_process._idle[0]._process.pid == server
os.kill(server, 9)
own_process._idle[0]._process.wait()
after = own_process.asked(name, {"x": 2})
print(json.dumps([os.getpid(), server, kept, [str(f) for f in found[1:4]], found[0], after]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("module", ["fork"], indirect=True)
class TestForkedServers:
    def test_a_fork_of_this_process_answers(self, module: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", FROM_A_FORK, module],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert done.stderr == "" and done.stdout.count("not flushed") == 1
        asker, server, kept, ends, first, after = json.loads(
            done.stdout.removeprefix("not flushed")
        )
        assert kept and asker != server
        assert ends == [
            str(Died(how)) for how in ("killed by SIGSEGV", "ValueError: no such thing", "exit 7")
        ]
        assert first["asked"] == 2 and after["asked"] == 1  # the second server is a new Python

    def test_it_ends_with_what_it_is_a_fork_of(self, module: str) -> None:
        """A process that is killed, or ends without a question, leaves no server."""
        code = (
            "import os\nfrom hlo_oracle import own_process\nown_process.fork_server()\n"
            "print(own_process._idle[0]._process.pid, flush=True)\n"
        )
        for end in ("", "os.kill(os.getpid(), 9)"):
            done = subprocess.run(
                [sys.executable, "-c", code + end], stdout=subprocess.PIPE, text=True, timeout=60
            )
            assert_end([done.stdout.strip()])
