"""A decoder that cannot be stopped ends the command, not the patience of whoever waits for it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

# As the command, but for a limit that a test can wait for.
COMMAND = """
import sys
from imgsvc_core import processing
from imgsvc_core.limits import Limits
processing._USUAL_LIMITS = Limits(seconds=0.5)
from imgsvc_cli.app import run
sys.exit(run(sys.argv[1:]))
"""
ENDLESS = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="5000" height="5000"><filter id="f">'
    + '<feTurbulence numOctaves="20" baseFrequency=".5"/>' * 60
    + '</filter><rect width="5000" height="5000" filter="url(#f)"/></svg>'
)


@pytest.mark.parametrize("as_json", [False, True])
def test_filters_that_take_minutes_end_in_time(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "slow.svg").write_text(ENDLESS)
    (tmp_path / "next.svg").write_text(ENDLESS.replace("60", "1"))
    arguments = ["process", "slow.svg", "next.svg", "-o", f"{tmp_path}/", "--format", "png"]
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments, *(["--json"] if as_json else [])],
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert time.monotonic() - started < 20
    assert done.returncode == 4
    if as_json:
        told = json.loads(done.stdout)
        assert (told["source"], told["error"]) == ("slow.svg", "time_limit_exceeded")
    else:
        assert "slow.svg: Processing took longer than the 0.5 seconds" in done.stderr
    assert "1 of 2 sources" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["next.svg", "slow.svg"]
