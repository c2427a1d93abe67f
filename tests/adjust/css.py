"""CSS and SVG filters on pixels, as resvg renders them: an implementation that is not ours."""

from __future__ import annotations

import base64

import numpy as np
import pyvips

from tests.support import requires
from tests.support.photos import Pixels, as_pixels, as_vips


def css(pixels: Pixels, function: str) -> Pixels:
    """Opaque pixels through a CSS filter function such as ``sepia(0.5)``."""
    return _render(pixels, f'filter="{function}"')


def linear(pixels: Pixels, slope: float, intercept: float) -> Pixels:
    """Opaque pixels through feComponentTransfer, on sRGB-encoded values."""
    channels = "".join(f'<feFunc{c} type="linear" slope="{slope}" intercept="{intercept}"/>' for c in "RGB")
    transfer = f"<feComponentTransfer>{channels}</feComponentTransfer>"
    region = 'x="0" y="0" width="1" height="1"'
    defined = f'<filter id="f" color-interpolation-filters="sRGB" {region}>{transfer}</filter>'
    return _render(pixels, 'filter="url(#f)"', defined)


def _render(pixels: Pixels, attribute: str, defined: str = "") -> Pixels:
    resvg = requires.module("resvg_py")
    height, width = pixels.shape[:2]
    png = base64.b64encode(as_vips(pixels).pngsave_buffer()).decode()
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}" height="{height}">{defined}<g {attribute}><image width="{width}" height="{height}" '
        f'image-rendering="pixelated" xlink:href="data:image/png;base64,{png}"/></g></svg>'
    )
    rendered = pyvips.Image.new_from_buffer(bytes(resvg.svg_to_bytes(svg_string=svg)), "")
    return np.asarray(as_pixels(rendered)[:, :, :3])
