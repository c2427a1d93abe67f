"""Computed pixels in memory that belongs to no library, so that they may be kept and shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pyvips

from imgsvc_core._runtime.libvips import check_not_forked
from imgsvc_core._runtime.vipsimage import bands_of, has, samples_of, size_of, space_of
from imgsvc_core.formats.metadata import apply_policy
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.vips import KEPT_FIELDS, to_depth

_KINDS = {"uchar": "uint8", "ushort": "uint16"}


@attrs.frozen(eq=False)
class Computed:
    """Pixels of 8 or 16 bits, the frames of an animation below each other, and what encoders need to know.

    ``fields`` has type and value of the metadata by libvips' names.
    """

    memory: Any = attrs.field(repr=False)
    size: tuple[int, int]
    bands: int
    samples: str
    space: str
    resolution: tuple[float, float]
    fields: Mapping[str, tuple[Any, Any]]

    @property
    def pixels(self) -> Any:
        """An array of (height, width, bands) on the same memory."""
        import numpy as np

        width, height = self.size
        return np.frombuffer(self.memory, _KINDS[self.samples]).reshape(height, width, self.bands)

    def to_vips(self) -> pyvips.Image:
        """Return an image of libvips on the same memory.

        Raises:
            ForkedProcess: libvips does not work in this process.
        """
        check_not_forked()
        image = pyvips.Image.new_from_memory(self.memory, *self.size, self.bands, self.samples)
        across, down = self.resolution
        image = image.copy(interpretation=self.space, xres=across, yres=down)
        for name, (kind, value) in self.fields.items():
            image.set_type(kind, name, value)
        return image


def computed(image: pyvips.Image | Raster, settings: SaveSettings) -> Computed | Raster:
    """Return the pixels of an image, computed into memory, with the metadata that may be kept.

    The depth of the format does not matter, unless 8 bits are asked for.
    """
    if isinstance(image, Raster):
        return image
    image = to_depth(
        apply_policy(image, settings.metadata, redacted=settings.redacted), 8 if settings.depth == 8 else 16
    )
    return Computed(
        memory=image.write_to_memory(),
        size=size_of(image),
        bands=bands_of(image),
        samples=samples_of(image),
        space=space_of(image),
        resolution=(image.get("xres"), image.get("yres")),
        fields={name: (image.get_typeof(name), image.get(name)) for name in KEPT_FIELDS if has(image, name)},
    )
