"""The settings of decoding and encoding."""

from __future__ import annotations

from typing import Literal

from imgsvc_core._runtime.records import frozen

MetadataPolicy = Literal["strip", "copyright", "keep"]
Subsampling = Literal["420", "444"]

MOST_EXAMINED = 16_000_000
"""Most pixels of a picture that is held in memory only to be examined. Larger ones count as photographs."""


@frozen(kw_only=True)
class LoadSettings:
    """How to decode: a scale to decode at, all frames or the first, in order or at random.

    ``scale`` is what `plan` chose among what the format allows: ``1/2``, ``1/4``, ``1/8`` of JPEG, the ratio
    of one of ``ImageInfo.levels``, or any factor if the decoder scales continuously (for SVG also above
    1). Without ``metadata``, readers need not search the file for it. With ``array``, a `Raster` is
    preferred to an image of libvips.
    """

    scale: float = 1.0
    all_frames: bool = False
    sequential: bool = True
    metadata: bool = True
    array: bool = False


@frozen(kw_only=True)
class SaveSettings:
    """How to encode. Values of ``None`` mean the default of the format.

    ``quality`` has no effect in formats without such a setting. ``progressive`` defaults to false for
    PNG and GIF, the picture decides for JPEG, and other formats have no such choice. ``subsampling`` and a
    limit of ``colors`` matter where the format has them; without a ``subsampling`` the picture decides. With
    ``max_bytes`` the quality is lowered from the one given as far as needed, or down a ``ladder`` of
    qualities, the last of which may be too large. A ``look`` is the SSIMULACRA2 that the file is to have at
    least, which `targets.look` sees to.

    ``depth`` is the most bits per channel, if the format keeps more. ``palettes`` names the library that
    chooses the colors of a GIF if the picture has too many. With ``photograph`` the source is known to be
    one, so that the pixels need not be examined. With ``redacted`` no metadata stays that could show or tell
    what the pixels must not.
    """

    format: str
    quality: int | None = None
    progressive: bool | None = None
    lossless: bool = False
    effort: int | None = None
    subsampling: Subsampling | None = None
    colors: int | None = None
    metadata: MetadataPolicy = "strip"
    max_bytes: int | None = None
    look: float | None = None
    ladder: tuple[int, ...] = ()
    depth: int | None = None
    palettes: str | None = None
    photograph: bool = False
    redacted: bool = False
