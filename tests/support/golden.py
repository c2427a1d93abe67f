"""Golden pictures: results that a person has looked at once, kept to notice when they change.

``pytest --write-goldens`` writes them anew: look at each before it is committed.
``pytest --golden-differences FOLDER`` writes expected, actual and amplified difference side by side.
"""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest
import pyvips

from tests.support.perceptual import distance
from tests.support.photos import Pixels, as_vips

FOLDER = Path(__file__).parent.parent / "golden"

_AMPLIFICATION = 8
_GAP = 8
_CHECKER = 12


@attrs.frozen
class GoldenCheck:
    """Compares results with the golden pictures, or writes them."""

    write: bool = False
    differences: Path | None = None
    folder: Path = FOLDER

    def __call__(self, name: str, picture: Pixels | pyvips.Image, tolerance: float = 0.003) -> None:
        """Fail when ``picture`` is further than ``tolerance`` from the golden picture of that name.

        The tolerance is a perceptual distance: .003 allows for rounding, .02 for another decoder or encoder.
        """
        path = self.folder / f"{name}.png"
        actual = picture if isinstance(picture, pyvips.Image) else as_vips(picture)
        if self.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            actual.pngsave(str(path), compression=9, keep="none")
            return
        if not path.exists():
            pytest.fail(f"No golden picture {name!r}: run pytest --write-goldens and look at {path}.")
        expected = pyvips.Image.new_from_buffer(path.read_bytes(), "")
        if _size(expected) != _size(actual):
            pytest.fail(f"{name}: expected {_size(expected)}, got {_size(actual)}.")
        if self.differences:
            target = self.differences / f"{name}.png"
            target.parent.mkdir(parents=True, exist_ok=True)
            side_by_side(expected, actual).pngsave(str(target))
        found = distance(expected, actual)
        if found > tolerance:
            pytest.fail(
                f"{name}: perceptual distance {found:.4f} from the golden picture, allowed {tolerance}."
            )


def side_by_side(expected: pyvips.Image, actual: pyvips.Image) -> pyvips.Image:
    """Expected, actual and eight times their difference around mid gray, from left to right."""
    left, middle = _shown(expected), _shown(actual)
    difference = ((middle - left) * _AMPLIFICATION + 128).cast("uchar").copy(interpretation="srgb")
    return pyvips.Image.arrayjoin([left, middle, difference], shim=_GAP, background=255)


def _shown(image: pyvips.Image) -> pyvips.Image:
    """8-bit sRGB, over a checkerboard where transparent."""
    image = image.colourspace("srgb")
    if not image.hasalpha():
        return image
    y, x = np.mgrid[0 : image.height, 0 : image.width] // _CHECKER
    checkers = as_vips(np.where((x + y) % 2, 204, 255).astype(np.uint8)).colourspace("srgb")
    return checkers.composite2(image, "over").flatten().cast("uchar")


def _size(image: pyvips.Image) -> str:
    return f"{image.width} x {image.height}"
