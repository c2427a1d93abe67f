"""Folded color operations on pictures with 8 or 16 bits per channel.

Between two blocks the pixels have 16 bits, whatever the picture has, so that only the last block rounds to
the picture's own depth. Alpha is never touched. The frames of an animation are processed together, as one
strip.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyvips

from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.formats.vips import usual_interpretation
from imgsvc_core.pixels.channels import join_alpha, split_alpha, white
from imgsvc_core.plan.color.matrices import Matrix, scale
from imgsvc_core.plan.color.steps import IsolateStep, VibranceStep
from imgsvc_core.plan.filter_works import Opacity
from imgsvc_core.plan.folding import Block, LutBlock, MatrixBlock, ToneBlock

_FORMATS = {"uchar": 255, "ushort": 65535}


def apply_blocks(image: pyvips.Image, blocks: Sequence[Block]) -> pyvips.Image:
    """Apply all blocks to a picture. Depth, metadata and alpha stay the same.

    ``blocks`` come from `plan.folding.fold`, with ``gray`` set for a gray picture. If they bring color into
    it, the result has three color bands.

    Raises:
        UnsupportedOperation: the channels have neither 8 nor 16 bits.
    """
    if not blocks:
        return image
    if image.format not in _FORMATS:
        raise UnsupportedOperation(
            f"Color operations need 8 or 16 bits per channel, got {image.format}; convert the picture first."
        )
    color, alpha = split_alpha(image)
    for block in blocks:
        format = image.format if block is blocks[-1] else "ushort"
        if isinstance(block, MatrixBlock):
            color = _apply_matrix(color, block, format)
        else:
            from imgsvc_core.pixels.tables import lookup_table  # imports NumPy

            assert isinstance(block, LutBlock | ToneBlock)
            color = color.maplut(lookup_table(block, white(color) + 1, _FORMATS[format]))
    space = usual_interpretation(color.bands, color.format)
    return join_alpha(color, alpha).copy(interpretation=space)


def multiply_alpha(image: pyvips.Image, opacity: Opacity) -> pyvips.Image:
    """Multiply alpha by a factor in [0, 1]. A picture without alpha gets an alpha band."""
    if opacity.value == 1:
        return image
    color, alpha = split_alpha(image)
    if alpha is None:
        return color.bandjoin(int(opacity.value * white(image) + 0.5))
    return join_alpha(color, (alpha * opacity.value).rint().cast(image.format))


def _apply_matrix(color: pyvips.Image, block: MatrixBlock, format: str) -> pyvips.Image:
    to_output = _FORMATS[format] / _FORMATS[color.format]
    result = _recombine(color, block.fixed, to_output)
    if block.scaled is not None and block.weight is not None:
        result += _recombine(color, block.scaled, to_output) * _weight(color, block.weight)
    # `cast` clamps but truncates.
    return result.rint().cast(format)


def _recombine(color: pyvips.Image, matrix: Matrix, factor: float) -> pyvips.Image:
    return color.recomb(list(map(list, matrix if factor == 1 else scale(matrix, factor))))


def _weight(color: pyvips.Image, step: VibranceStep | IsolateStep) -> pyvips.Image:
    """Return the weight at each pixel, as one band of floats."""
    red, green, blue = color.bandsplit()
    top = red.maxpair(green).maxpair(blue)
    chroma = top - red.minpair(green).minpair(blue)
    if isinstance(step, VibranceStep):
        strength = step.value / 100
        return chroma.linear(-strength / white(color), 1 + strength)
    from imgsvc_core.pixels.tables import isolate_table
    from imgsvc_core.plan.color.weights import wants_gray

    if wants_gray(step.color):
        place = chroma / top
    else:
        # The HSV hue: its sextant follows from the largest channel, the place in it from the other two.
        # libvips divides by zero to zero, so grays get the hue of red; they have no color to weight.
        red_top, green_top = top == red, top == green
        numerator = red_top.ifthenelse(green - blue, green_top.ifthenelse(blue - red, red - green))
        start = red_top.ifthenelse(1, green_top.ifthenelse(3, 5))
        place = (numerator / chroma + start) * (1 / 6)
    return (place * 65535).rint().cast("ushort").maplut(isolate_table(step))
