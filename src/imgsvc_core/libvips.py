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
    """Remember and log no operations, and let no loader but those of the format table touch a file.

    Once for all: threads that read pictures meanwhile would meet loaders which are blocked for a moment.
    """
    with _lock:
        _guard()


@functools.cache
def _guard() -> None:
    import pyvips

    pyvips.cache_set_max(0)
    if pyvips.API_mode:
        # Its own prints a traceback for what is no UTF-8, such as names of profiles.
        pyvips.ffi.def_extern(name="_log_handler_callback")(lambda domain, level, message, data: None)
    pyvips.operation_block_set("VipsForeignLoad", True)
    for loader in _TRUSTED_LOADERS:
        pyvips.operation_block_set(loader, False)
