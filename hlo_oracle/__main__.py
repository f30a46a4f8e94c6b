"""``python -m hlo_oracle`` is the command ``hlo``."""

import sys

from hlo_oracle.command.main import main

sys.exit(main())
