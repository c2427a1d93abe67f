"""Prepare a process for untrusted images, and the message for its death.

This module does not import a pool, so forked processes do not load one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pkgutil
import resource
from importlib import import_module
from pathlib import Path

from imgsvc_core._runtime.deadline import expect_kill_by_parent
from imgsvc_core._runtime.libvips import guard

NOT_BEGUN = (
    "Worker processes die before they begin: see whether the machine, or the memory limit of a worker, "
    "leaves memory for them, and try again."
)
_KEPT_BYTES = 1 << 25
_WORKER_SCORE, _LAST_SCORE = 300, 1000  # thousandths of the memory, the kernel's unit


def prepare_worker(memory_bytes: int | None) -> None:
    """Prepare this process for untrusted files. Its parent must kill it soon after a time limit.

    Call this before numpy is imported.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads for other cores would spin, and be lost at a fork
    _keep_freed_memory()
    _be_ended_first()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    guard()
    expect_kill_by_parent()


def _keep_freed_memory() -> None:
    """Let glibc keep freed memory from the first picture on, as it does after large pictures.

    Otherwise it returns the memory of each small picture to the kernel, and gets it again page by page.
    """
    trim_threshold, mmap_threshold = -1, -3
    with contextlib.suppress(AttributeError):  # another libc
        for parameter in (trim_threshold, mmap_threshold):
            ctypes.CDLL(None).mallopt(parameter, _KEPT_BYTES)


def _be_ended_first() -> None:
    """Let the kernel kill this process rather than its parent if the machine runs out of memory."""
    with contextlib.suppress(OSError, ValueError):  # another system
        own = Path("/proc/self/oom_score_adj")
        own.write_text(str(min(_LAST_SCORE, int(own.read_text()) + _WORKER_SCORE)))


def preload() -> None:
    """Import the library with the code of all formats in a process that forks workers, which inherit it."""
    import numpy.ma  # noqa: F401  (numpy.unique imports it)
    from PIL import AvifImagePlugin, Image, WebPImagePlugin  # noqa: F401

    import imgsvc_core.pixels.layers.laying
    import imgsvc_core.pixels.pointwise
    import imgsvc_core.pixels.reduction
    import imgsvc_core.pixels.watermarks
    import imgsvc_core.plan.filter_works
    import imgsvc_core.processing
    import imgsvc_core.targets.pending  # noqa: F401
    from imgsvc_core import formats
    from imgsvc_core.formats.jpeg import jpegli, turbojpeg
    from imgsvc_core.formats.png import deflating

    Image.preinit()
    turbojpeg.decoder()
    deflating.compressor()
    if jpegli.has_encoder():
        import pyjpegli  # noqa: F401
    for module in pkgutil.walk_packages(formats.__path__, f"{formats.__name__}."):
        import_module(module.name)
