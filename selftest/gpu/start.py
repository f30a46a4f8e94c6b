"""Check a GPU from the bundle, with nothing but Python: no pip, no compiler, no network.

    python3 -m selftest.gpu.start [options of selftest.gpu.check]

The packages of each version of Python lie unpacked in ``site/``, cubins in ``cubins/``. The report
is written to ``docs/gpu.md`` when all is done; until then the status is 75, and the same command
goes on.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    site = ROOT / "site" / version
    if not site.exists():
        there = sorted(path.name for path in (ROOT / "site").glob("*"))
        print(f"this is Python {version}; the bundle is for {', '.join(there) or 'none'}: start one"
              " of these, or pack with --python", file=sys.stderr)  # fmt: skip
        return 1
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    cubins = ROOT / "cubins"
    cubins.chmod(0o700)  # the cache takes no directory that others may write to
    words = ["--cubins", str(cubins), "--write", str(ROOT / "docs" / "gpu.md"), *sys.argv[1:]]
    command = [sys.executable, "-m", "selftest.gpu.check", *words]
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
