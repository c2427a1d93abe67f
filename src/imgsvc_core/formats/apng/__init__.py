"""Animated PNG, frame by frame through libvips' PNG codec."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from imgsvc_core.formats.format import DEFLATE, Coder, Format, Memory
from imgsvc_core.formats.png import Png
from imgsvc_core.formats.reader import HeaderReader

if TYPE_CHECKING:
    from imgsvc_core.formats.png.header import PngHeader


class Apng(Format):
    """Animated PNG, with 8 or 16 bits."""

    name = "apng"
    title = "Animated PNG"
    media_type = "image/apng"
    suffixes = (".apng",)
    magic = Png.magic
    reader = Coder(Memory(2.3), ("libvips:pngload_source",))
    writer = Coder(Memory(3.3), ("libvips:pngsave_target",))
    effort = DEFLATE
    animation = True
    depth = 16
    shown_by_browsers = True
    rewrites = True
    metadata = ("exif", "xmp", "profile")
    becomes = "apng"

    header: PngHeader

    @classmethod
    def probe(cls, reader: HeaderReader) -> Png | Apng:
        """Read the header as of any PNG."""
        return Png.probe(reader)

    @classmethod
    def module(cls, name: str) -> ModuleType:
        """Return a module of the format's package, or the one that rewrites any PNG."""
        return Png.module(name) if name == "rewriting" else super().module(name)
