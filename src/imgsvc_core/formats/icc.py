"""Read ICC profiles that consist of three curves and a matrix (ICC.1:2022).

A profile of sRGB is recognized by its numbers and not by its name, because linear, extended and simplified
variants have the name too.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

Light = Callable[[float], float]

# The columns of red, green and blue to XYZ, adapted to D50 (IEC 61966-2-1, annex F, with Bradford's matrix).
_COLORANTS = {
    b"rXYZ": (0.43607, 0.22249, 0.01392),
    b"gXYZ": (0.38515, 0.71687, 0.09708),
    b"bXYZ": (0.14307, 0.06061, 0.71410),
}
_FORMULAS = (1, 3, 4, 5, 7)  # numbers of each kind of formula
_CURVES, _GRAY_CURVE = (b"rTRC", b"gTRC", b"bTRC"), b"kTRC"
_TABLES = (b"A2B", b"D2B")  # readers use these rather than colorants and curves
_COLORANT_TOLERANCE = 0.001
_CURVE_TOLERANCE = 0.5 / 255
_SAMPLES = 64
_MOST_TAGS = 100
_DAMAGE = (KeyError, IndexError, struct.error, ArithmeticError)


class MatrixProfile(NamedTuple):
    """The light of each value of red, green and blue, and the columns of the matrix to XYZ.

    A gray profile has three equal curves and the matrix of sRGB.
    """

    curves: tuple[tuple[float, ...], ...]
    colorants: tuple[tuple[float, ...], ...]


SRGB_COLORANTS = tuple(_COLORANTS.values())


def is_srgb(profile: bytes) -> bool:
    """Return True if 8-bit samples are the same in a profile and in sRGB, by its colorants and curves."""
    try:
        tags = _matrix_tags(profile)
        return tags is not None and (
            all(_near(_colorant(tags[name]), wanted) for name, wanted in _COLORANTS.items())
            and all(_is_srgb_curve(curve) for curve in {tags[name] for name in _CURVES})
        )
    except _DAMAGE:
        return False


@functools.lru_cache(maxsize=4)
def matrix_profile(profile: bytes, values: int) -> MatrixProfile | None:
    """Return curves and matrix of an RGB or gray profile, None if it is damaged or made of tables.

    ``values`` is the number of values of a channel.
    """
    try:
        tags = _matrix_tags(profile)
        if tags is None:
            return None
        names = (_GRAY_CURVE,) * 3 if _GRAY_CURVE in tags else _CURVES
        curves = {tags[name]: _sampled(tags[name], values) for name in {*names}}
        colorants = (
            SRGB_COLORANTS if _GRAY_CURVE in tags else tuple(_colorant(tags[name]) for name in _COLORANTS)
        )
        return MatrixProfile(tuple(curves[tags[name]] for name in names), colorants)
    except _DAMAGE:
        return None


def _matrix_tags(profile: bytes) -> dict[bytes, bytes] | None:
    """Return the tags of a profile for RGB or gray, or None if it has tables, which readers prefer."""
    if profile[16:24] not in (b"RGB XYZ ", b"GRAYXYZ "):
        return None
    tags = dict(_tags(profile))
    return None if any(name.startswith(_TABLES) for name in tags) else tags


def _sampled(curve: bytes, values: int) -> tuple[float, ...]:
    light = _light(curve)
    return tuple(light(value / (values - 1)) for value in range(values))


def _tags(profile: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content of each tag (7.3)."""
    (count,) = struct.unpack_from(">I", profile, 128)
    for index in range(min(count, _MOST_TAGS)):
        name, offset, length = struct.unpack_from(">4sII", profile, 132 + 12 * index)
        yield name, profile[offset : offset + length]


def _colorant(tag: bytes) -> tuple[float, ...]:
    return _fixed(tag, 8, 3)


def _near(found: tuple[float, ...], wanted: tuple[float, ...]) -> bool:
    return all(abs(one - other) <= _COLORANT_TOLERANCE for one, other in zip(found, wanted, strict=True))


def _is_srgb_curve(curve: bytes) -> bool:
    """Return True if a curve turns values into light as sRGB does. Encoded values are compared."""
    light = _light(curve)
    samples = (index / (_SAMPLES - 1) for index in range(_SAMPLES))
    return all(abs(_encoded(light(sample)) - sample) <= _CURVE_TOLERANCE for sample in samples)


def _encoded(light: float) -> float:
    return 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055


def _light(curve: bytes) -> Light:
    return _formula(curve) if curve[:4] == b"para" else _table(curve)


def _table(curve: bytes) -> Light:
    """Return a sampled curve (10.6). Without samples it is the identity; a single one is an exponent."""
    (count,) = struct.unpack_from(">I", curve, 8)
    if count == 0:
        return lambda value: value
    samples = struct.unpack_from(f">{count}H", curve, 12)
    if count == 1:
        return lambda value: float(value ** (samples[0] / 256))

    def light(value: float) -> float:
        place = value * (count - 1)
        before = min(int(place), count - 2)
        low, high = samples[before], samples[before + 1]
        return float(low + (place - before) * (high - low)) / 65535

    return light


def _formula(curve: bytes) -> Light:
    """Return (a x + b)^g + e from d on, and c x + f below (10.18). First kinds have fewer numbers."""
    (kind,) = struct.unpack_from(">H", curve, 8)
    numbers = _fixed(curve, 12, _FORMULAS[kind])
    g, (a, b) = numbers[0], numbers[1:3] or (1.0, 0.0)
    c = d = e = f = 0.0
    if kind in (1, 2):  # below -b / a the light is that of 0
        e = sum(numbers[3:])
    elif kind >= 3:
        c, d, e, f = (*numbers[3:], 0.0, 0.0)[:4]
    return lambda value: max(0.0, a * value + b) ** g + e if value >= d else c * value + f


def _fixed(data: bytes, offset: int, count: int) -> tuple[float, ...]:
    """Return numbers that have 16 bits before and 16 after the point."""
    return tuple(number / 65536 for number in struct.unpack_from(f">{count}i", data, offset))
