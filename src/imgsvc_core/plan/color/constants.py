"""Numbers that the color formulas share, and numbers that were chosen by looking at results."""

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

ENHANCE_SAMPLE_SIDE: Final = 256
"""``enhance`` measures a copy whose longer side has about this many pixels."""

ENHANCE_GROUND: Final = 0.03
"""Part of the picture from which on flat pixels of one color are a ground and no part of the subject."""

ENHANCE_BLACK_GROUND: Final = 0.2
"""The same for black, which photographs have too where they are underexposed."""

ENHANCE_SAME_LEVEL: Final = 2
"""Levels of 255 by which JPEG may change the color of a ground."""

ENHANCE_NOISE: Final = 5.5
"""Standard deviation of the pixels of a ground in levels of 255: a little more than noise of 4 levels."""

ENHANCE_NOISE_SIDE: Final = 9
"""Side of the squares whose mean tells the color of a noisy ground."""

ENHANCE_BRIGHT_GROUND: Final = 0.7
"""Darkest channel from which on a ground around the picture is bright."""

ENHANCE_SURROUNDED: Final = 0.75
"""Part of the border from which on a bright ground surrounds the picture."""

ENHANCE_MOSTLY_FLAT: Final = 0.5
"""Part of flat grounds other than black from which on a picture is a graphic, which is meant as it is."""

ENHANCE_LEAST_SUBJECT: Final = 0.01
"""Part of the pixels beside all grounds up to which they are too few to tell anything."""

ENHANCE_TAIL: Final = 0.5
"""Percent of the tones at each end that ``enhance`` may clip."""

ENHANCE_MARGIN: Final = 0.01
"""Tones nearer to white than this are clipped, and a median nearer to mid gray needs no correction."""

ENHANCE_MIN_RANGE: Final = 0.1
"""Range of tones below which a picture counts as flat and keeps its levels."""

ENHANCE_MAX_STOPS: Final = 2.0
"""Largest gain of light, so that noise in the dark does not become the picture."""

ENHANCE_STOPS_DOUBT: Final = 0.45
"""Missing stops up to which a picture may be meant to be as dark as it is."""

ENHANCE_INSET_DOUBT: Final = 0.05
"""Distance of both ends of the tones from black and white up to which a picture may be meant to be soft."""

ENHANCE_MAX_INSET: Final = 0.3
"""Largest such distance that is stretched away: 2.5 times the contrast, so that fog keeps being fog."""

ENHANCE_HAZE_DOUBT: Final = 0.15
"""Distance of the dark end alone from black up to which it may be meant."""

ENHANCE_DARKEST_MEDIAN: Final = 0.4
"""Median below which no haze is taken away, since what is left would be too dark."""

ENHANCE_MUCH_CLIPPED: Final = 0.6
"""Part of the pixels at white from which a picture surely got too much light."""

ENHANCE_MID_TONE: Final = 0.5
"""Median luma above which a picture counts as too bright."""

ENHANCE_MID_STRENGTH: Final = 0.6
"""Part of the excess above it that is taken away."""

ENHANCE_CAST_STRENGTH: Final = 0.8
"""Part of a measured color cast that is taken away."""

ENHANCE_BRIGHT_PERCENTILE: Final = 96
"""Luma percentile from which pixels count as highlights, which tend to have the color of the light."""

ENHANCE_NEAR_GRAY: Final = 0.3
"""HSV saturation up to which mid tones tell something about the color of the light."""

ENHANCE_NEUTRAL: Final = 0.02
"""HSV saturation below which a flat ground is gray, and so is the light."""

ENHANCE_MUCH_GRAY: Final = 0.25
"""Least part of such mid tones among the pixels, so that a brown cat is not taken for a gray one."""

ENHANCE_COLORED_LIGHT: Final = 0.5
"""Saturation of linear light from which highlights have a color of their own."""

ENHANCE_CAST_DOUBT: Final = 0.01
"""Distance of the largest gain from 1 up to which it may be no cast."""

ENHANCE_MIN_CHROMA: Final = 0.05
"""Mean chroma below which there is no color to enliven."""

ENHANCE_CHROMA: Final = 0.12
"""Mean chroma below which colors are enlivened."""

ENHANCE_MAX_VIBRANCE: Final = 20
"""Largest vibrance that ``enhance`` asks for."""
