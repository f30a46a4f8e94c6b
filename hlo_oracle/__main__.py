"""``python -m hlo_oracle`` is the command ``hlo``."""

import sys

from hlo_oracle.command.main import main

if __name__ == "__main__":
    sys.exit(main())
