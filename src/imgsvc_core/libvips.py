"""libvips as a process wants it that owns it: a command, or a worker."""

from __future__ import annotations

import functools
import threading

_TRUSTED_LOADERS = (
    "VipsForeignLoadJpeg",
    "VipsForeignLoadPng",
    "VipsForeignLoadNsgif",
    "VipsForeignLoadWebp",
    "VipsForeignLoadTiff",
    "VipsForeignLoadHeif",
    "VipsForeignLoadSvg",
    "VipsForeignLoadJp2k",
)


_lock = threading.Lock()


def guard() -> None:
    """Remember no operations, and let no loader but those of the format table touch a file.

    Once for all: threads that read pictures meanwhile would meet loaders which are blocked for a moment.
    """
    with _lock:
        _guard()


@functools.cache
def _guard() -> None:
    import pyvips

    pyvips.cache_set_max(0)
    pyvips.operation_block_set("VipsForeignLoad", True)
    for loader in _TRUSTED_LOADERS:
        pyvips.operation_block_set(loader, False)
