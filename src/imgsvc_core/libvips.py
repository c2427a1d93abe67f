"""libvips as a process wants it that owns it: a command, or a worker."""

from __future__ import annotations

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


def guard() -> None:
    """Remember no operations, and let no loader but those of the format table touch a file."""
    import pyvips

    pyvips.cache_set_max(0)
    pyvips.operation_block_set("VipsForeignLoad", True)
    for loader in _TRUSTED_LOADERS:
        pyvips.operation_block_set(loader, False)
