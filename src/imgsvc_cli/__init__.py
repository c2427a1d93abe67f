"""The ``imgsvc`` command."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

INTERRUPTED = 130
"""The exit code after an interrupt: 128 and the number of its signal."""


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Import modules without collecting garbage, which takes a fifth of the time: modules stay for ever.

    Garbage of an import before, such as classes that attrs replaced by those with slots, is collected first:
    what is imported next takes its place.
    """
    gc.unfreeze()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
