"""RGB color spaces that files state by numbers instead of a profile.

The code points are those of ITU-T H.273, which HEIC and AVIF (``nclx``), PNG (``cICP``) and video share.
"""

from __future__ import annotations

from typing import Literal

from imgsvc_core._runtime.records import frozen

Chromaticity = tuple[float, float]
Primaries = tuple[Chromaticity, Chromaticity, Chromaticity, Chromaticity]
"""CIE 1931 (x, y) of red, green, blue and white."""

Transfer = Literal["srgb", "gamma", "log100", "log316", "st428", "pq", "hlg"]

_D65, _C, _E = (0.3127, 0.329), (0.31, 0.316), (1 / 3, 1 / 3)
SRGB: Primaries = ((0.64, 0.33), (0.3, 0.6), (0.15, 0.06), _D65)
DISPLAY_P3: Primaries = ((0.68, 0.32), (0.265, 0.69), (0.15, 0.06), _D65)
BT2020: Primaries = ((0.708, 0.292), (0.17, 0.797), (0.131, 0.046), _D65)

_PRIMARIES: dict[int, Primaries] = {
    4: ((0.67, 0.33), (0.21, 0.71), (0.14, 0.08), _C),
    5: ((0.64, 0.33), (0.29, 0.6), (0.15, 0.06), _D65),
    6: ((0.63, 0.34), (0.31, 0.595), (0.155, 0.07), _D65),
    7: ((0.63, 0.34), (0.31, 0.595), (0.155, 0.07), _D65),
    8: ((0.681, 0.319), (0.243, 0.692), (0.145, 0.049), _C),
    9: BT2020,
    10: ((1, 0), (0, 1), (0, 0), _E),
    11: ((0.68, 0.32), (0.265, 0.69), (0.15, 0.06), (0.314, 0.351)),
    12: DISPLAY_P3,
    22: ((0.63, 0.34), (0.295, 0.605), (0.155, 0.077), _D65),
}
_GAMMAS = {4: 2.2, 5: 2.8, 8: 1.0}
_CURVES: dict[int, Transfer] = {9: "log100", 10: "log316", 17: "st428"}
_PQ, _HLG = 16, 18

_USUAL_PEAK = 1000.0  # cd/m2; the nominal peak of HLG, and what most PQ content is mastered for
_SAME_GAMMA = 0.05  # a relative difference in gamma below which libpng sees none
_SAME_CHROMATICITY = 0.002
_LEAST_AREA = 0.001  # of the triangle of the primaries; less makes the color matrix singular


@frozen
class RgbSpace:
    """How the channels of a picture stand for colors.

    ``transfer`` turns channels into light: the curve of sRGB, a power ``gamma``, a logarithm with a range of
    100:1 or 316:1, the curve of digital cinema (SMPTE ST 428-1), or for HDR the PQ or HLG curve of ITU-R
    BT.2100. ``peak`` is the luminance of the brightest HDR pixel in cd/m2.
    """

    primaries: Primaries = SRGB
    transfer: Transfer = "srgb"
    gamma: float = 1.0
    peak: float = _USUAL_PEAK

    @property
    def is_hdr(self) -> bool:
        """True if the picture needs tone mapping."""
        return self.transfer in ("pq", "hlg")


def from_code_points(primaries: int, transfer: int, peak: float = 0) -> RgbSpace | None:
    """Return the space of two code points, None for sRGB. Unspecified and unknown points mean sRGB.

    The curves of BT.709, BT.601, SMPTE 240M, xvYCC, BT.1361 and BT.2020 describe cameras, not displays; such
    pictures are shown with the curve of sRGB, as browsers show them. ``peak`` is the stated brightest
    luminance, 0 if none is.
    """
    chosen = _PRIMARIES.get(primaries, SRGB)
    if transfer == _PQ:
        return RgbSpace(chosen, "pq", peak=peak or _USUAL_PEAK)
    if transfer == _HLG:
        return RgbSpace(chosen, "hlg")
    if transfer in _GAMMAS:
        return RgbSpace(chosen, "gamma", _GAMMAS[transfer])
    if transfer in _CURVES:
        return RgbSpace(chosen, _CURVES[transfer])
    return None if chosen == SRGB else RgbSpace(chosen)


def from_gamma(primaries: Primaries | None, gamma: float | None) -> RgbSpace | None:
    """Return the space of chromaticities and a display gamma, None for sRGB. Impossible values are ignored.

    With the primaries of sRGB, a gamma near 2.2 is the curve of sRGB: programs that write it mean that.
    """
    chosen = primaries if primaries and _possible(primaries) and not _is_srgb(primaries) else SRGB
    if gamma is None or not 0.1 < gamma < 10 or (chosen == SRGB and abs(gamma / 2.2 - 1) < _SAME_GAMMA):
        return None if chosen == SRGB else RgbSpace(chosen)
    return RgbSpace(chosen, "gamma", gamma)


def _is_srgb(primaries: Primaries) -> bool:
    return all(
        abs(one - other) < _SAME_CHROMATICITY
        for found, wanted in zip(primaries, SRGB, strict=True)
        for one, other in zip(found, wanted, strict=True)
    )


def _possible(primaries: Primaries) -> bool:
    (rx, ry), (gx, gy), (bx, by), (wx, wy) = primaries
    area = abs((gx - rx) * (by - ry) - (bx - rx) * (gy - ry)) / 2
    return area > _LEAST_AREA and wy > 0.01 and wx > 0.01 and wx + wy < 0.99
