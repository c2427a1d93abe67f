"""Facts of an image from its header."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from imgsvc_core._runtime.docstrings import documented
from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.rgb_space import RgbSpace


def _fact(default: Any, doc: str) -> Any:
    return attrs.field(default=default, metadata={"doc": doc})


@documented
@frozen(kw_only=True)
class ImageInfo:
    """Facts of an encoded image, for reports and for planning.

    ``width`` and ``height`` of a source are those of one frame as stored. With an ``orientation`` of 5 to 8,
    the picture is shown with the two exchanged. ``width`` and ``height`` of a result are as shown, and
    ``upright`` is true if its file has an orientation nevertheless. Facts that a format does not have, such
    as the quality of a PNG, are `None`.
    """

    name: str = _fact("", "File name, if known.")
    format: str = attrs.field(metadata={"doc": "Format name, as in the format table."})
    width: int = attrs.field(metadata={"doc": "Width of a frame in pixels."})
    height: int = attrs.field(metadata={"doc": "Height of a frame in pixels."})
    colorspace: str = attrs.field(
        metadata={"doc": "Color space of the stored pixels: srgb (any RGB), gray, cmyk, lab or palette."}
    )
    decoded_pixels: int | None = _fact(
        None, "Pixels that a decoder computes for a source, if they are more than it shows."
    )
    channels: int | None = _fact(None, "Stored channels, if they may be more than color and alpha.")
    layers: int | None = _fact(
        None, "Images of its size that layers, masks and filters of a drawing need at most."
    )
    contents: int | None = _fact(
        None, "Bytes that texts of a PNG, or elements, texts and pictures of a drawing need at most."
    )
    interlaced: bool = _fact(False, "Whether the image is progressive or interlaced.")
    subsample: str | None = _fact(None, "Chroma subsampling such as 4:2:0, for formats that have it.")
    depth: int = _fact(8, "Bits per channel.")
    quality: int | None = _fact(None, "Quality 1 to 100, estimated from the quantization tables of a JPEG.")
    look: float | None = _fact(None, "SSIMULACRA2 score of a result, if the request asks for a look.")
    bytes: int = attrs.field(metadata={"doc": "Size of the encoded image in bytes."})
    frames: int = _fact(1, "Number of frames.")
    alpha: bool = _fact(False, "Whether the image has transparency.")
    orientation: int = _fact(1, "EXIF orientation, 1 to 8.")
    upright: bool = _fact(
        False, "Whether width and height of a result are as shown, although its file has an orientation."
    )
    sha256: str | None = _fact(None, "SHA-256 of the encoded bytes, if requested.")
    delays: tuple[int, ...] = _fact((), "Duration of each frame of an animation in milliseconds.")
    plays: int | None = _fact(None, "How often an animation plays; 0 is forever.")
    profile: bool = _fact(False, "Whether a color profile is embedded.")
    rgb_space: RgbSpace | None = _fact(
        None, "RGB space that the file states by numbers instead of a profile; null for sRGB."
    )
    levels: tuple[tuple[int, int], ...] = _fact(
        (), "Smaller sizes at which the file can be decoded, largest first."
    )
    more_pages: bool = _fact(False, "Whether the file has further pages or pictures, which are not read.")
    lossless: bool = _fact(False, "Whether a JPEG or a TIFF has every pixel as it was when it was stored.")

    facts: Mapping[str, Any] = attrs.field(
        factory=dict,
        hash=False,
        metadata={"doc": "Facts of the pixels that were asked for, by name, as JSON values."},
    )

    @property
    def upright_size(self) -> tuple[int, int]:
        """Return width and height as shown, after the EXIF orientation."""
        turned = self.orientation >= 5 and not self.upright
        return (self.height, self.width) if turned else (self.width, self.height)

    @property
    def colors(self) -> int:
        """Return the number of color channels once a palette is looked up."""
        return {"gray": 1, "cmyk": 4}.get(self.colorspace, 3)

    @property
    def stored_pixel(self) -> int:
        """Return the bytes of a pixel with all its channels."""
        return (self.channels or self.colors + self.alpha) * math.ceil(self.depth / 8)

    @property
    def vector(self) -> bool:
        """Return True for a drawing, which has no pixels until it is rendered at a size."""
        return self.format == "svg"  # its row is above this module

    @property
    def animated(self) -> bool:
        """Return True if there is more than one frame."""
        return self.frames > 1

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON values, in the order of their declaration."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in attrs.asdict(self).items()
        }
