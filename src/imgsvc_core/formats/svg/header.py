"""SVG: its size as browsers compute it, and what librsvg may need to draw it."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from imgsvc_core.errors import MemoryLimitExceeded
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.svg.bounds import bound
from imgsvc_core.formats.svg.inlined import inlined_bytes
from imgsvc_core.formats.svg.markup import read_markup
from imgsvc_core.formats.svg.size import at_size, background, natural_size
from imgsvc_core.formats.svg.styles import with_known_styles

if TYPE_CHECKING:
    import pyvips

_GLOBAL_WORDS = frozenset({"currentcolor", "inherit", "initial", "revert", "revert-layer", "unset"})
_MOST_SIDE = 100_000_000
"""Pixels of a side that libvips can count."""


def read_header(reader: HeaderReader) -> tuple[ImageInfo, bytes]:
    """Read the facts of an SVG at 96 dots per inch, and its markup.

    Raises:
        MemoryLimitExceeded: librsvg could need more memory than the reader allows. It would end the process
            if it got less than it needs, so it is not called.
    """
    from imgsvc_core.formats.boundary import translate_errors  # with libvips

    markup = with_known_styles(read_markup(reader))
    sides = natural_size(markup)
    width, height = (math.floor(min(side, _MOST_SIDE) + 0.5) for side in sides)
    found = bound(markup)
    if max(sides) > _MOST_SIDE:
        raise reader.too_large(
            f"it is more than {_MOST_SIDE:,} pixels wide or high; "
            "give it a smaller width and height or viewBox"
        )
    if not width or not height:
        raise reader.corrupt(
            "it has no size, or one of less than half a pixel; give it a larger width and height or viewBox"
        )
    inlined = inlined_bytes(found.links, reader.most_inlined)
    if found.contents + inlined > reader.most_memory:
        raise MemoryLimitExceeded(
            f"The elements of the SVG image could need {found.contents:,} bytes of memory, and the pictures "
            f"in it {inlined:,}; at most {reader.most_memory:,} are allowed: remove elements, shorten texts, "
            "or inline smaller pictures."
        )
    with translate_errors("svg"):
        render(markup, width, height)
    info = ImageInfo(
        format="svg",
        width=width,
        height=height,
        colorspace="srgb",
        bytes=reader.size,
        alpha=True,
        layers=found.layers,
        contents=found.contents + inlined,
    )
    return info, markup


def render(markup: bytes, width: int, height: int, **options: object) -> pyvips.Image:
    """Return a drawing at a size, not yet computed; ``options`` go to libvips.

    It comes from memory, so that it reaches no other file.
    """
    import pyvips

    dpi = 96  # that of CSS, for the lengths in it; libvips would also enlarge the drawing
    drawing = at_size(markup, width, height)
    return pyvips.Image.svgload_buffer(drawing, dpi=dpi, scale=72 / dpi, **options)


def on_background(image: pyvips.Image, markup: bytes) -> pyvips.Image:
    """Lay a drawing on the background color of its root element, which librsvg leaves out.

    librsvg tells which color is meant. Anything else, such as a gradient, is transparent.
    """
    stated = background(markup)
    if not stated or stated.lower() in _GLOBAL_WORDS:
        return image
    pixel = f'<rect width="1" height="1" fill="none" style="fill:{escape(stated)}"/>'
    color = render(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1">{pixel}</svg>'.encode(), 1, 1
    )
    *rgb, alpha = color(0, 0)
    if alpha == 255:
        return image.flatten(background=rgb).bandjoin(255)
    return image.new_from_image([*rgb, alpha]).composite2(image, "over") if alpha else image
