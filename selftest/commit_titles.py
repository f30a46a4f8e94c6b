"""Check commit messages: ``python -m selftest.commit_titles [--message FILE]``.

A title is ``area: imperative``, of 72 characters at most, and names one change; a body says why.
Without ``--message`` every commit since the last tag is checked, but none that is older than this
file: the rule began with it. Merges are left out. Where there is no history (a source archive, no
git, a clone of one commit) there is nothing to check. Exit status: 0 if all is well, 1 if not.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 72

# Git runs this with whichever python3 there is, so nothing is imported from outside the library.
_TITLE = re.compile(r"(?P<area>[\w./-]+(?:, [\w./-]+)*): (?P<verb>[^\s,:;]+)")
_TRAILER = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)+: ")  # Signed-off-by and the like
_SCISSORS = re.compile(r"^# -+ >8 -+$.*", re.MULTILINE | re.DOTALL)  # of git commit --verbose
_UNFINISHED = ("fixup! ", "squash! ", "amend! ")  # git rebase --autosquash takes them away

# What is no imperative by its form, and the verbs that only look so.
_NO_VERBS = {"a", "all", "an", "another", "each", "every", "it", "no", "one", "some", "that", "the"}
_FORMS = re.compile(r"\w+(?:ing|ed|[^isu]s)")
_VERBS = {"alias", "bias", "bring", "embed", "exceed", "feed", "need", "proceed", "seed", "speed"}


def faults(message: str) -> Iterator[str]:
    """List what is wrong with a commit message, and what to write instead."""
    title, *rest = message.strip().splitlines() or [""]
    if len(title) > LONGEST:
        yield f"the title has {len(title)} characters, {LONGEST} are the most"
    if ";" in title:
        yield "the title has a semicolon: make a commit of each change"
    if title.endswith("."):
        yield "the title ends with a full stop"
    yield from _form(title)
    if rest and rest[0].strip():
        yield "the second line is to be empty"
    if not any(line.strip() and not _TRAILER.match(line) for line in rest):
        yield "there is no body: say why the change is made"


def _form(title: str) -> Iterator[str]:
    match = _TITLE.match(title)
    if match is None:
        yield "the title is not `area: imperative`, as in `kernels: sum rows in 32 lanes`"
        return
    verb = match["verb"]
    if not verb[0].islower():
        yield f"{verb!r} is not lower case: the title is `area: imperative`"
    elif verb in _NO_VERBS or (_FORMS.fullmatch(verb) and verb not in _VERBS):
        yield f"{verb!r} is no imperative: say what the commit does as a command (add, mend, move)"


def written(text: str) -> str:
    """Strip git's comments from the message of a file that an author edits."""
    lines = _SCISSORS.sub("", text).splitlines()
    return "\n".join(line for line in lines if not line.startswith("#")).strip()


def is_exempt(message: str) -> bool:
    """Test for messages of merges, and of commits that a rebase will squash."""
    return message.startswith(("Merge ", *_UNFINISHED))


def commits(root: Path) -> dict[str, str]:
    """List the messages, by hash, for which the rule holds; none without the project's history."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top.strip()).resolve() != root:
        return {}
    own = str(Path(__file__).resolve().relative_to(ROOT))
    added = _git(root, "log", "--diff-filter=A", "--format=%H", "--", own).split()
    tag = _git(root, "describe", "--tags", "--abbrev=0").split()
    if not added:
        return {}
    older = (*added[-1:], *tag)
    listed = _git(root, "log", "--no-merges", "-z", "--format=%h %B", "HEAD", "--not", *older, "--")
    records = (record.partition(" ") for record in listed.split("\0") if record)
    return {revision: message for revision, _, message in records}


def _git(root: Path, *words: str) -> str:
    """Run git; return its output, empty where it fails or is missing."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--message", metavar="FILE", type=Path, help="check the message in a file")
    file = parser.parse_args(arguments).message
    if file is None:
        messages = commits(ROOT)
    else:
        message = written(file.read_text(errors="replace"))
        messages = {} if is_exempt(message) else {"this commit": message}
    wrong = {name: list(faults(message)) for name, message in messages.items()}
    for name, found in wrong.items():
        title = messages[name].partition("\n")[0]
        for fault in found:
            print(f"{name}: {title!r}: {fault}", file=sys.stderr)
    if any(wrong.values()):
        print("CONTRIBUTING.md has the rules of commit messages.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
