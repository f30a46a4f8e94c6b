"""``python -m hlo_oracle.record -o DIR script.py``: record what JAX computes in a script.

The function of the same name is :func:`hlo_oracle.recording.record`.
"""

import sys

from hlo_oracle.recording import main

if __name__ == "__main__":
    sys.exit(main())
