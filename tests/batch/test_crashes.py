"""Workers that die cost their picture alone, and the report says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.batch.pictures import fill
from tests.support import forked_python
from tests.support.forked_python import COMMAND

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
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    run = subprocess.run(  # by a new process, as workers of a few pictures are forked from their command
        [
            sys.executable, *COMMAND, "batch", str(tmp_path / "in"), str(tmp_path / "out"), "--spec", "-",
            "--workers", "1",
        ],
        input="{}", env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert run.stderr.count("3 done, 1 failed") == 1, run.stderr
    manifest = tmp_path / "out" / ".imgsvc-batch.sqlite"
    report = forked_python.run(*COMMAND, "batch", "report", "--manifest", str(manifest))
    assert told in report.stdout
