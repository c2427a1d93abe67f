"""The ``imgsvc`` command."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

INTERRUPTED = 130
"""The exit code after an interrupt: 128 and the number of its signal."""
_NEW_OBJECTS = 10_000
_NEVER = 1 << 20


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Import modules while garbage is collected among new objects only.

    Modules stay for ever: collecting among all takes a fifth of the time. Without collecting, the service
    keeps 3 MB of garbage, such as classes that attrs replaced by those with slots.
    """
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, _NEVER, _NEVER)
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*before)
