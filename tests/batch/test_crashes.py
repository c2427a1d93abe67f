"""Workers that die cost their picture alone, and the report says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.batch.pictures import fill

CRASHES = """
import os, signal
from imgsvc_batch import work
from imgsvc_core._runtime.process_memory import naming_shortage

def crash(job, source, process=work._process):
    content = source.read()
    if content.startswith(b"crash"):
        with naming_shortage(int(content[5:])):
            os.kill(os.getpid(), signal.SIGSEGV)
    return process(job, source)

work._process = crash
"""


@pytest.mark.parametrize(
    ("needed", "told"), [(1, "worker_died"), (1 << 60, "memory_limit_exceeded")], ids=["enough", "too little"]
)
def test_a_crash_is_told_as_a_lack_of_memory_if_the_picture_may_need_more(
    needed: int, told: str, tmp_path: Path
) -> None:
    fill(tmp_path / "in", 3)
    (tmp_path / "in" / "crash.jpg").write_bytes(b"crash%d" % needed)
    (tmp_path / "sitecustomize.py").write_text(CRASHES)
    command = [sys.executable, "-m", "imgsvc_cli", "batch"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [*command, str(tmp_path / "in"), str(tmp_path / "out"), "--spec", "-", "--workers", "1"],
        input="{}", text=True, capture_output=True, env=environment, check=False,
    )  # fmt: skip
    assert run.stderr.count("3 done, 1 failed") == 1, run.stderr
    report = subprocess.run(
        [*command, "report", "--manifest", str(tmp_path / "out" / ".imgsvc-batch.sqlite")],
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert told in report.stdout
