"""sharp in a node process of its own, which times its own loop: one thread, no cache.

Needs node and npm; sharp itself is installed by ``benchmarks/installed.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness import Timing
from benchmarks.installed import node_packages

_PROGRAM = Path(__file__).with_name("sharp.js")


class Sharp:
    """A running node process; requests go in and answers come out one by one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, repeats: int = 1, **request: Any) -> dict[str, float]:
        """Wall and CPU seconds per operation, and the peak memory of the process in MB.

        ``input`` path, ``buffered`` to read it only once, sharp's ``options``, ``crop`` after a turn by 90
        degrees, ``resize`` with width and height, ``blur`` as a standard deviation, ``mark`` a path,
        ``layers`` with ``input`` (a path), ``left`` and ``top``, ``format`` and its ``save`` options,
        ``output`` path or nothing for a buffer, ``keep`` a path to write the buffer to.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"repeats": repeats, **request}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, float] = json.loads(self._process.stdout.readline())
        return answer

    def timing(self, repeats: int, **request: Any) -> Timing:
        """The same as a timing for the harness."""
        answer = self.run(repeats, **request)
        return Timing(wall=answer["wall"], cpu=answer["cpu"])


@contextmanager
def sharp_process() -> Iterator[Sharp]:
    """A fresh node process with sharp, ended on leaving."""
    environment = os.environ | {"NODE_PATH": str(node_packages())}
    with subprocess.Popen(
        ["node", str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        yield Sharp(process)
        assert process.stdin is not None
        process.stdin.close()
