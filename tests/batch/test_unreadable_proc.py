"""A batch on a system that tells a process nothing of itself, as some sandboxes do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import encoded

UNREADABLE = """
import sys

def refuse(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc/self/"):
        if str(arguments[0]).split("/")[3] in ("task", "statm"):
            raise PermissionError(13, "Permission denied")

sys.addaudithook(refuse)
"""


def test_it_does_its_work(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(UNREADABLE)
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.png").write_bytes(encoded.png().data)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, "-m", "imgsvc_cli", "batch", "in", "out", "--resize", "9x9"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 done" in done.stderr + done.stdout
    assert "Permission" not in done.stderr
