"""Ctrl-C ends a campaign in a line, and says how it goes on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_local import Numbers

from fuzz.campaign import local
from hlo_oracle import campaign_progress


@pytest.mark.parametrize("is_kept", [False, True])
def test_ctrl_c(
    tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str], is_kept: bool
) -> None:
    def interrupted(*given: Any) -> Iterator[Any]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(local, "run", interrupted)
    state = str(tmp_path / "state") if is_kept else None
    parser = argparse.ArgumentParser()
    campaign_progress.add_options(parser, workers=0)
    given = parser.parse_args([] if state is None else ["--state", state])
    with pytest.raises(SystemExit) as ended:
        campaign_progress.run(Numbers(), 10, given, "numbers", lambda total: "")
    errors = capsys.readouterr().err.splitlines()
    assert ended.value.code == 130 and errors[-1] == "hlo: interrupted"
    assert errors[:-1] == ([f"the same command goes on from {state}"] if is_kept else [])
