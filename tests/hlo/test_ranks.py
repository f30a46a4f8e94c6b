"""The ranks that a header says a module is made for."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hlo
from hlo.ranks import declared


def test_declared() -> None:
    body = "ENTRY e {\n  ROOT r = u32[] replica-id()\n}\n"
    assert declared(hlo.parse(f"HloModule m\n{body}")) == (1, 1)
    assert declared(hlo.parse(f"HloModule m, replica_count=2, num_partitions=4\n{body}")) == (2, 4)
    module = hlo.parse(f"HloModule m\n{body}")
    for wrong in ("x", "0", "99999999999"):
        with pytest.raises(hlo.ArgumentError, match="not a number of ranks"):
            declared(replace(module, attributes={"replica_count": wrong}))
