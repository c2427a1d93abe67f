"""libvips in this process: its setup, and its state after a fork."""

from __future__ import annotations

import functools
import os
import threading
from pathlib import Path

from imgsvc_core.errors import ForkedProcess

_lock = threading.Lock()


def guard() -> None:
    """Set up libvips in a process of our own: no cache, no log, and only the loaders of the format table.

    Only the first call has an effect. All loaders are blocked for a moment, so no other thread may use
    libvips during this call.
    """
    with _lock:
        _guard()


@functools.cache
def _guard() -> None:
    import pyvips

    from imgsvc_core.formats.table import FORMATS

    pyvips.cache_set_max(0)
    if pyvips.API_mode:
        # The default handler prints a traceback if a message, such as a profile's name, is not UTF-8.
        pyvips.ffi.def_extern(name="_log_handler_callback")(lambda domain, level, message, data: None)
    pyvips.operation_block_set("VipsForeignLoad", True)
    for row in FORMATS.values():
        for _, _, operation in (package.partition("libvips:") for package in row.reader.packages):
            if loader := pyvips.type_find("VipsForeignLoad", operation):
                family = pyvips.type_name(loader).removesuffix("Source").removesuffix("Buffer")
                pyvips.operation_block_set(family, False)


_workers_at_fork = _fonts_at_fork = False
_lacks_workers = _lacks_fonts = False
_FORKED = (
    "This process was forked after its parent had {done}, and {library} does not work in it: start processes "
    "by 'spawn' or 'forkserver', as with multiprocessing.get_context('spawn')."
)


def check_not_forked() -> None:
    """Refuse to work in a process that was forked while its parent had threads of libvips.

    Raises:
        ForkedProcess: a child does not have these threads, and libvips would wait for them forever.
    """
    if _lacks_workers:
        raise ForkedProcess(_FORKED.format(done="processed images", library="libvips"))


def check_text_not_forked() -> None:
    """Refuse to draw text in a process that was forked after its parent had drawn some.

    Raises:
        ForkedProcess: a child does not have the thread of Pango, which would wait for it forever.
    """
    if _lacks_fonts:
        raise ForkedProcess(_FORKED.format(done="drawn text", library="Pango"))


def _before_fork() -> None:
    """Note if libvips and Pango have threads here. Those of libvips end after some idle seconds."""
    global _workers_at_fork, _fonts_at_fork
    names = thread_names()
    _workers_at_fork = "libvips worker" in names
    _fonts_at_fork = any(name.startswith("[pango]") for name in names)


def _after_fork_in_child() -> None:
    global _lacks_workers, _lacks_fonts
    _lacks_workers, _lacks_fonts = _lacks_workers or _workers_at_fork, _lacks_fonts or _fonts_at_fork


def thread_names() -> list[str]:
    """Return the names of the threads of this process, or no names where /proc is missing or hidden."""
    try:
        return [_name_of(thread) for thread in _THREADS.iterdir()]
    except OSError:
        return []


def _name_of(thread: Path) -> str:
    try:
        return (thread / "comm").read_text().strip()
    except OSError:  # the thread has ended
        return ""


_THREADS = Path("/proc/self/task")
os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
