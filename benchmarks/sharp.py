"""sharp in a node process of its own, which times its own loop: one thread, no cache.

Needs node and npm; sharp itself is installed by ``benchmarks/installed.py``.

A job has ``input``, a path, ``buffered`` to read it only once, sharp's ``options``, ``extract`` before all
else, ``turn`` by 90 degrees, ``crop`` after such a turn, ``resize`` with width, height and kernel, ``blur``
as a standard deviation, ``convolve``, ``mark``, a path, ``layers`` with ``input`` (a path), ``left`` and
``top``, ``format`` and its ``save`` options, ``output``, a path, or nothing for a buffer, and ``keep``, a
path to write the buffer to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import Program, running
from benchmarks.installed import node_packages

_PROGRAM = Path(__file__).with_name("sharp.js")

Sharp = Program


@contextmanager
def sharp_process() -> Iterator[Sharp]:
    """Start a fresh node process with sharp, which also tells its ``peak_memory`` in MB."""
    with running(["node", _PROGRAM], os.environ | {"NODE_PATH": str(node_packages())}) as program:
        yield program
