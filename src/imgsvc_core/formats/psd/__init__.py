"""PSD and PSB: the composite picture, by psd-tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core.formats.format import Coder, Format, Memory

if TYPE_CHECKING:
    from imgsvc_core.formats.psd.header import Document


class Psd(Format):
    """PSD and PSB: the picture of all layers together that Photoshop stores."""

    name = "psd"
    title = "PSD"
    media_type = "image/vnd.adobe.photoshop"
    suffixes = (".psd", ".psb")
    magic = rb"8BPS\0[\x01\x02]"
    reader = Coder(Memory(3.4), ("psd_tools",))
    depth = 16
    becomes = "jpg"

    header: Document
