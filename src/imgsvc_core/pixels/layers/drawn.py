"""A layer in the making."""

from __future__ import annotations

from typing import Any

import pyvips

from imgsvc_core._runtime.records import frozen
from imgsvc_core._runtime.vipsimage import size_of
from imgsvc_core.pixels.blending import flat
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Color


@frozen
class Drawn:
    """A picture with alpha, and how far it reaches beyond each edge of the box of its layer.

    With a ``color`` the picture is its alpha alone. ``array`` has the same samples, (height, width), if they
    are at hand.
    """

    image: pyvips.Image
    margin: int = 0
    color: Color | None = None
    array: Any = None

    @property
    def box(self) -> Size:
        """The size of the box."""
        width, height = size_of(self.image)
        return Size(width - 2 * self.margin, height - 2 * self.margin)

    @property
    def filled(self) -> Drawn:
        """The same with colors and alpha."""
        return self if self.color is None else Drawn(flat(self.image, self.color), self.margin)

    @property
    def visible(self) -> Drawn:
        """The part that is not transparent, as its own box."""
        alpha = self.image if self.color is not None else self.image.extract_band(self.image.bands - 1)
        box = alpha.find_trim(threshold=0, background=[0], line_art=True)
        return Drawn(self.image.crop(*box), 0, self.color) if box[2] else self

    def widened(self, more: int) -> Drawn:
        """Return the same with a margin that is larger by some pixels."""
        width, height = size_of(self.image)
        image = self.image.embed(more, more, width + 2 * more, height + 2 * more)
        return Drawn(image, self.margin + more, self.color)
