"""GIF: Pillow decodes the frames, libvips encodes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Effort, Format, Memory

if TYPE_CHECKING:
    from imgsvc_core.formats.gif.header import GifHeader


class Gif(Format):
    """GIF, a still or an animation."""

    name = "gif"
    title = "GIF"
    media_type = "image/gif"
    suffixes = (".gif",)
    magic = rb"GIF8[79]a"
    reader = Coder(Memory(2.6, one_by_one=True), ("PIL",))
    writer = Coder(Memory(4.2, one_by_one=True), ("libvips:gifsave_target",))
    effort = Effort((3, 3, 3, 3, 3, 6, 7, 8, 9, 10), default=5)
    animation = True
    lossless = False
    palette = True
    interlaces = True
    colorful = False
    widespread = True
    shown_by_browsers = True
    becomes = "gif"

    header: GifHeader
