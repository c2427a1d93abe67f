"""Batches that die at a moment of our choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec

from tests.support import forked_python


def kill(source: str, target: Path, spec: dict[str, Any], *, placed: bool = True, **options: Any) -> None:
    """Run a batch of the picture ``a.png`` in memory that is killed right after its result is in place.

    Or, if it is not to be ``placed``, right before.
    """
    script = target.parent / "killed.py"
    script.write_text(
        "import os, sys, fsspec\n"
        "import imgsvc_batch\n"
        "from imgsvc_batch import placing\n"
        "def die(*_):\n    os._exit(9)\n"
        f"if not {placed}:\n    placing.move = die\n"
        f"fsspec.filesystem('memory').pipe_file('{source}/a.png', sys.stdin.buffer.read())\n"
        f"imgsvc_batch.run('{source}', '{target}', {{'': {spec}}}, workers=1, on_event=die, **{options})\n"
    )
    picture = fsspec.filesystem("memory").cat_file(f"{source}/a.png")
    ended = forked_python.run(str(script), stdin=picture)
    assert ended.returncode == 9
