"""Numbers shared by the color formulas, and those that were chosen by looking at results."""

from __future__ import annotations

from typing import Final

LUMA_WEIGHTS: Final = (0.213, 0.715, 0.072)
"""Weights of red, green and blue in luma, as rounded by the CSS filter functions. They sum to 1."""

NEUTRAL_MIRED: Final = 153.75
"""Temperature 0 in mired (6504 K, about daylight D65); one unit of ``temperature`` adds one mired."""

TINT_DUV: Final = 1 / 3000
"""Distance from the Planckian locus (CIE 1960 uv) for one unit of ``tint``, towards magenta."""

EXPOSURE_STOPS: Final = 2.0
"""Stops of ``exposure`` 100."""

SHADOW_LIFT: Final = 1.5
"""Strength of the shadow curve; up to 3 it stays monotone."""

ISOLATE_FEATHER: Final = 0.04
"""Width of the soft edge of ``isolate``, as a part of the half circle of hues."""

ISOLATE_NEAR_GRAY: Final = 0.1
"""HSV saturation below which the color to isolate has no usable hue, so that grays are kept instead."""
