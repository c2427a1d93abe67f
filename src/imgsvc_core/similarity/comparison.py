"""Compare two pictures: one door to all measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import LimitExceeded, SourceError, UnsupportedOperation
from imgsvc_core.limits import Limits
from imgsvc_core.processing import process
from imgsvc_core.sources.receiving import Source
from imgsvc_core.spec import Output, Spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST_SSIM = 0.01
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601, as in JPEG


@frozen
class Similarity:
    """How alike two pictures look.

    Attributes:
        ssim: structural similarity of the luma: 1 for equal pictures, about 0 for unrelated ones.
        ssimulacra2: 100 for equal pictures; at 90 the difference cannot be seen, at 70 it is hard to see,
            and 50 is medium quality. It is below 0 for very bad ones.
    """

    ssim: float
    ssimulacra2: float

    @property
    def dssim(self) -> float:
        """Return the structural dissimilarity 1 / SSIM - 1: 0 for equal pictures, and at most 99.

        One photograph is about 0.01 from itself written by another encoder with the same quality, 0.06 with
        quality 80 instead of 90, and 0.1 after a blur of one pixel.
        """
        return 1 / max(self.ssim, _LEAST_SSIM) - 1

    def to_dict(self) -> dict[str, float]:
        """Return all measures as JSON values."""
        return {"ssim": self.ssim, "dssim": self.dssim, "ssimulacra2": self.ssimulacra2}


def compare(original: Source, other: Source, *, limits: Limits | None = None) -> Similarity:
    """Return how alike a picture looks to an original of the same size. Both are made upright and sRGB.

    Pictures with alpha are compared on white and on black, and the lower score counts. Of animations, only
    the first frames are compared.

    >>> compare("photo.jpg", "photo.jpg").ssimulacra2  # doctest: +SKIP
    100.0

    Raises:
        UnsupportedOperation: their sizes differ.
        ImgsvcError: a picture cannot be read or decoded, or exceeds the limits.
    """
    from imgsvc_core.similarity.shown import grounds_for, on_ground, with_room

    decoded = _pixels("original", original, limits), _pixels("other", other, limits)
    sizes = [f"{pixels.shape[1]}x{pixels.shape[0]}" for pixels in decoded]
    if sizes[0] != sizes[1]:
        raise UnsupportedOperation(
            f"Pictures must have the same size to be compared, got {' and '.join(sizes)}."
        )
    pictures = [with_room(pixels) for pixels in decoded]
    grounds = grounds_for(*pictures)
    worst = [_compare(*(on_ground(ground, pixels) for pixels in pictures)) for ground in grounds]
    return Similarity(min(item.ssim for item in worst), min(item.ssimulacra2 for item in worst))


def _compare(original: NDArray[np.uint8], other: NDArray[np.uint8]) -> Similarity:
    from imgsvc_core.similarity.ssimulacra2 import Original
    from imgsvc_core.similarity.structure import ssim

    return Similarity(ssim(_luma(original), _luma(other)), Original.of(original).score(other))


def _pixels(role: str, source: Source, limits: Limits | None) -> NDArray[np.uint8]:
    """Return the pixels of a picture, in 8 bits."""
    try:
        result = process(source, Spec(output=Output(format="png", depth=8)), limits=limits)
    except (SourceError, LimitExceeded) as error:
        error.begin_with(f"The {role} picture")
        raise
    return result.to_numpy()


def _luma(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    luma: NDArray[np.uint8] = (pixels @ _LUMA).round().astype("uint8")
    return luma
