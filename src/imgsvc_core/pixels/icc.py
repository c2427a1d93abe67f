"""Telling from an ICC profile alone whether it is that of sRGB (ICC.1:2022).

By its numbers and not by its name: linear, extended and simplified relatives bear the name too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

# The columns of red, green and blue to XYZ, adapted to D50 (IEC 61966-2-1, annex F, with Bradford's matrix).
_COLORANTS = {
    b"rXYZ": (0.43607, 0.22249, 0.01392),
    b"gXYZ": (0.38515, 0.71687, 0.09708),
    b"bXYZ": (0.14307, 0.06061, 0.71410),
}
_FORMULAS = {3: 5, 4: 7}  # how many numbers those kinds have that can be sRGB
_CURVES = (b"rTRC", b"gTRC", b"bTRC")
_TABLES = (b"A2B", b"D2B")  # these go before colorants and curves
_COLORANT_TOLERANCE = 0.001
_CURVE_TOLERANCE = 0.5 / 255
_SAMPLES = 64
_MOST_TAGS = 100


def is_srgb(profile: bytes) -> bool:
    """Whether 8-bit samples are the same in a profile and in sRGB: colorants and curves are those of sRGB."""
    if profile[16:24] != b"RGB XYZ ":
        return False
    try:
        tags = dict(_tags(profile))
        return (
            not any(name.startswith(_TABLES) for name in tags)
            and all(_near(_colorant(tags[name]), wanted) for name, wanted in _COLORANTS.items())
            and all(_is_srgb_curve(curve) for curve in {tags[name] for name in _CURVES})
        )
    except (KeyError, struct.error, ArithmeticError):
        return False


def _tags(profile: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and content of each tag (7.3)."""
    (count,) = struct.unpack_from(">I", profile, 128)
    for index in range(min(count, _MOST_TAGS)):
        name, offset, length = struct.unpack_from(">4sII", profile, 132 + 12 * index)
        yield name, profile[offset : offset + length]


def _colorant(tag: bytes) -> tuple[float, ...]:
    return _fixed(tag, 8, 3)


def _near(found: tuple[float, ...], wanted: tuple[float, ...]) -> bool:
    return all(abs(one - other) <= _COLORANT_TOLERANCE for one, other in zip(found, wanted, strict=True))


def _is_srgb_curve(curve: bytes) -> bool:
    """Whether a curve turns encoded values into light as sRGB does; the difference is taken as encoded."""
    light = _formula(curve) if curve[:4] == b"para" else _table(curve)
    if light is None:
        return False
    samples = (index / (_SAMPLES - 1) for index in range(_SAMPLES))
    return all(abs(_encoded(light(sample)) - sample) <= _CURVE_TOLERANCE for sample in samples)


def _encoded(light: float) -> float:
    return 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055


def _table(curve: bytes) -> Callable[[float], float] | None:
    """A sampled curve (10.6); none for a plain power, which is stored as one sample or without any."""
    (count,) = struct.unpack_from(">I", curve, 8)
    if count < 2:
        return None

    def light(value: float) -> float:
        place = value * (count - 1)
        before = min(int(place), count - 2)
        low, high = struct.unpack_from(">2H", curve, 12 + 2 * before)
        return float(low + (place - before) * (high - low)) / 65535

    return light


def _formula(curve: bytes) -> Callable[[float], float] | None:
    """(a x + b)^g + e from d on, and c x + f below it (10.18); none for the kinds without a straight part."""
    (kind,) = struct.unpack_from(">H", curve, 8)
    if kind not in _FORMULAS:
        return None
    g, a, b, c, d, e, f = (*_fixed(curve, 12, _FORMULAS[kind]), 0.0, 0.0)[:7]
    return lambda value: max(0.0, a * value + b) ** g + e if value >= d else c * value + f


def _fixed(data: bytes, offset: int, count: int) -> tuple[float, ...]:
    """Numbers of 16 bits before and 16 after the point."""
    return tuple(number / 65536 for number in struct.unpack_from(f">{count}i", data, offset))
