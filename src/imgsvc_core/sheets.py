"""Many pictures on one sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

from imgsvc_core.errors import ImgsvcError, Problem, SpecError
from imgsvc_core.limits import Limits, check_output
from imgsvc_core.processing import process
from imgsvc_core.sources.receiving import Source
from imgsvc_core.spec import Color, Output, Resize, Spec
from imgsvc_core.targets.result import Result
from imgsvc_core.targets.writing import Target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WHITE = Color(255, 255, 255)


@overload
def contact_sheet(
    sources: Iterable[Source],
    target: None = None,
    *,
    columns: int | None = None,
    width: int = 240,
    height: int = 240,
    gap: int = 8,
    background: Color | str = _WHITE,
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
    background: Color | str = _WHITE,
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
    background: Color | str = _WHITE,
    output: Output | None = None,
    limits: Limits | None = None,
) -> Result[Any]:
    """Show pictures in rows and columns on one sheet, each of them whole and in the middle of its cell.

    Args:
        sources: the pictures, in the order of reading; of animations the first frame is shown.
        target: as in `process`.
        columns: the number of columns; by default about as many as rows.
        width: the width of a cell in pixels.
        height: the height of a cell in pixels.
        gap: the space between cells and around them in pixels.
        background: the color of the space, and under transparent pictures.
        output: the format of the sheet; by default that of the target's suffix, or JPEG.
        limits: how much work each picture, and the sheet, may cause.

    >>> contact_sheet(["a.jpg", "b.png"], "sheet.webp", columns=2)  # doctest: +SKIP

    Raises:
        TypeError: there is one path instead of several pictures.
        SpecError: there are no pictures, or a number is out of range.
        ImgsvcError: what `process` raises; the message names the picture.
    """
    if isinstance(sources, str | bytes):
        raise TypeError(f"Sources must be an iterable of pictures, got {type(sources).__name__}.")
    pictures = list(sources)
    color = Output(background=background).background
    columns = math.ceil(math.sqrt(len(pictures))) if columns is None else columns
    _check(len(pictures), columns, gap)
    rows = math.ceil(len(pictures) / columns)
    size = columns * (width + gap) + gap, rows * (height + gap) + gap
    check_output(*size, 1, limits or Limits())
    cell = Spec(
        resize=Resize(width=width, height=height, mode="fill", upscale=False, background=color),
        output=Output(format="jpg", background=color, depth=8),
    )
    sheet = _blank(*size, color)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        left, top = gap + column * (width + gap), gap + row * (height + gap)
        sheet[top : top + height, left : left + width] = _cell(number, picture, cell, limits)
    usual = Output(format="jpg") if target is None else None
    return process(sheet, output or usual, target, limits=limits)


def _check(pictures: int, columns: int, gap: int) -> None:
    problems = [
        Problem(path, f"Contact sheet '{path}' parameter must be {expected}", f"got {value}")
        for path, value, least, expected in (
            ("sources", pictures, 1, "at least one picture"),
            ("columns", columns, min(1, pictures), "a positive integer"),
            ("gap", gap, 0, "an integer of at least 0"),
        )
        if value < least
    ]
    if problems:
        raise SpecError(problems)


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
