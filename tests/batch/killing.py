"""Batches that die at a moment of our choice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec


def kill(source: str, target: Path, spec: dict[str, Any], **options: Any) -> None:
    """Run a batch of the picture ``a.png`` in memory that is killed when it has written the result.

    It remembers nothing of that.
    """
    script = target.parent / "killed.py"
    script.write_text(
        "import os, sys, fsspec\n"
        "import imgsvc_batch\n"
        "from imgsvc_batch import running\n"
        "running._Run._remember = lambda run, events, *_: os._exit(9) if events else None\n"
        f"fsspec.filesystem('memory').pipe_file('{source}/a.png', sys.stdin.buffer.read())\n"
        f"imgsvc_batch.run('{source}', '{target}', {{'': {spec}}}, workers=1, **{options})\n"
    )
    picture = fsspec.filesystem("memory").cat_file(f"{source}/a.png")
    ended = subprocess.run([sys.executable, script], input=picture, timeout=60, check=False)
    assert ended.returncode == 9
