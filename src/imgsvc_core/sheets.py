"""Many pictures on one sheet."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, overload

from imgsvc_core.errors import ImgsvcError, SpecError, invalid
from imgsvc_core.limits import Limits, check_output
from imgsvc_core.processing import process, process_until
from imgsvc_core.sources.receiving import Source
from imgsvc_core.spec import Color, Output, Resize, Spec
from imgsvc_core.spec.color import WHITE
from imgsvc_core.spec.declare import Accepts, Parameters, declared, param
from imgsvc_core.spec.geometry import PIXELS
from imgsvc_core.spec.kinds import HexColor, Integer
from imgsvc_core.targets.result import Result
from imgsvc_core.targets.writing import Target, suffix_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ONE = (str, bytes, bytearray, memoryview, os.PathLike, io.IOBase)


@declared
class _Layout(Parameters):
    """The rows and columns of a sheet."""

    title: ClassVar[str] = "Contact sheet"

    columns: int = param("The number of columns.", PIXELS)
    width: int = param("The width of a cell.", PIXELS, unit="pixels")
    height: int = param("The height of a cell.", PIXELS, unit="pixels")
    gap: int = param("The space between cells and around them.", Integer(0, 65_535), unit="pixels")
    background: Accepts[Color, Color | str] = param("The color of the space.", HexColor(alpha=False))


@overload
def contact_sheet(
    sources: Iterable[Source],
    target: None = None,
    *,
    columns: int | None = None,
    width: int = 240,
    height: int = 240,
    gap: int = 8,
    background: Color | str = WHITE,
    output: Output | None = None,
    limits: Limits | None = None,
) -> Result[bytes]: ...
@overload
def contact_sheet(
    sources: Iterable[Source],
    target: Target,
    *,
    columns: int | None = None,
    width: int = 240,
    height: int = 240,
    gap: int = 8,
    background: Color | str = WHITE,
    output: Output | None = None,
    limits: Limits | None = None,
) -> Result[None]: ...
def contact_sheet(
    sources: Iterable[Source],
    target: Target | None = None,
    *,
    columns: int | None = None,
    width: int = 240,
    height: int = 240,
    gap: int = 8,
    background: Color | str = WHITE,
    output: Output | None = None,
    limits: Limits | None = None,
) -> Result[Any]:
    """Show pictures in rows and columns on one sheet, each of them whole and in the middle of its cell.

    Args:
        sources: the pictures, row by row. An animation shows its first frame.
        target: as in `process`.
        columns: the number of columns; by default about as many as rows.
        width: the width of a cell in pixels.
        height: the height of a cell in pixels.
        gap: the space between cells and around them in pixels.
        background: the color of the space, and under transparent pictures.
        output: how the sheet is encoded; the format is by default that of the target's suffix,
            or JPEG.
        limits: how much work each picture, and the sheet, may cause.

    >>> contact_sheet(["a.jpg", "b.png"], "sheet.webp", columns=2)  # doctest: +SKIP

    Raises:
        TypeError: there is one path instead of several pictures.
        SpecError: there are no pictures, or a number is out of range.
        ImgsvcError: what `process` raises; the message names the picture.
    """
    pictures = _several(sources)
    usual = math.ceil(math.sqrt(len(pictures)))
    layout = _Layout(
        columns=usual if columns is None else columns,
        width=width,
        height=height,
        gap=gap,
        background=background,
    )
    columns, width, height, gap = layout.columns, layout.width, layout.height, layout.gap
    rows = math.ceil(len(pictures) / columns)
    size = columns * (width + gap) + gap, rows * (height + gap) + gap
    check_output(*size, 1, limits or Limits())
    cell = Spec(
        resize=Resize(width=width, height=height, mode="fill", upscale=False, background=layout.background),
        output=Output(format="jpg", background=layout.background, depth=8),
    )
    sheet = _blank(*size, layout.background)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        left, top = gap + column * (width + gap), gap + row * (height + gap)
        sheet[top : top + height, left : left + width] = _cell(number, picture, cell, limits)
    return process_until(
        None, sheet, Spec(output=output), target, suffix=suffix_of(target) or ".jpg", limits=limits
    )


def _several(sources: Iterable[Source]) -> list[Source]:
    """Return pictures as a list, which is not empty."""
    one = isinstance(sources, _ONE) or getattr(sources, "ndim", 4) < 4
    if one or not isinstance(sources, Iterable):
        raise TypeError(f"Sources must be an iterable of pictures, got {type(sources).__name__}.")
    pictures = list(sources)
    if not pictures:
        raise invalid("sources", "Contact sheet 'sources' parameter must be at least one picture", "got 0")
    return pictures


def _blank(width: int, height: int, color: Color) -> NDArray[np.uint8]:
    import numpy as np

    return np.full((height, width, 3), color.rgb, np.uint8)


def _cell(number: int, picture: Source, cell: Spec, limits: Limits | None) -> NDArray[np.uint8]:
    """Return the RGB of a picture in its cell, or gray for all three."""
    try:
        pixels = process(picture, cell, limits=limits).to_numpy()
    except SpecError:
        raise
    except ImgsvcError as error:
        error.begin_with(f"Picture {number + 1} of the sheet")
        raise
    return pixels if pixels.ndim == 3 else pixels[..., None]
