"""ICO and CUR, by numpy and libvips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Format, Memory

if TYPE_CHECKING:
    from imgsvc_core.formats.ico.header import Icon


class Ico(Format):
    """ICO and CUR: the largest picture of the directory."""

    name = "ico"
    title = "ICO"
    media_type = "image/x-icon"
    suffixes = (".ico", ".cur")
    magic = rb"\0\0[\x01\x02]\0(?!\0\0)"
    reader = Coder(Memory(3), ("numpy",))
    writer = Coder(Memory(2.4), ("libvips:pngsave_target",))
    internal = True
    max_side = 256
    becomes = "png"

    header: Icon
