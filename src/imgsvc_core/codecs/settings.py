"""The settings of decoding and encoding."""

from __future__ import annotations

from typing import Literal

import attrs

MetadataPolicy = Literal["strip", "copyright", "keep"]


@attrs.frozen(kw_only=True)
class LoadSettings:
    """How to decode: a scale to decode at, all frames or the first, in order or at random.

    ``scale`` is what `plan` chose among what the format allows: ``1/2``, ``1/4``, ``1/8`` of JPEG, the ratio
    of one of ``ImageInfo.levels``, or any factor if the decoder scales continuously (for SVG also above
    1).
    """

    scale: float = 1.0
    all_frames: bool = False
    sequential: bool = True


@attrs.frozen(kw_only=True)
class SaveSettings:
    """How to encode. Values of ``None`` mean the default of the format.

    ``quality`` has no effect in formats without such a setting. ``progressive`` defaults to true for JPEG and
    to false for PNG and GIF, which it makes larger; other formats have no such choice. With ``max_bytes`` the
    quality is lowered from the one given as far as needed.
    """

    format: str
    quality: int | None = None
    progressive: bool | None = None
    lossless: bool = False
    effort: int | None = None
    metadata: MetadataPolicy = "strip"
    max_bytes: int | None = None
