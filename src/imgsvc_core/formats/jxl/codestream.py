"""The header of a codestream of JPEG XL (ISO/IEC 18181-1, annexes D and E)."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.jxl.bits import ENUM, BitReader, BitWriter, Distribution
from imgsvc_core.formats.rgb_space import (
    BT2020,
    DISPLAY_P3,
    SRGB,
    Chromaticity,
    Primaries,
    RgbSpace,
    from_code_points,
    from_gamma,
)

START = b"\xff\x0a"
RATE: tuple[Distribution, ...] = ((100, 0), (1000, 0), (1, 10), (1, 30))
RATE_DIVISOR: tuple[Distribution, ...] = ((1, 0), (1001, 0), (1, 8), (1, 10))
PLAYS: tuple[Distribution, ...] = ((0, 0), (0, 3), (0, 16), (0, 32))
DEPTHS: tuple[Distribution, ...] = ((8, 0), (10, 0), (12, 0), (1, 6))
ALPHA, SPOT, BLACK, _COLOR_FILTER = 0, 2, 4, 5  # kinds of extra channels
_SIDES: tuple[Distribution, ...] = ((1, 9), (1, 13), (1, 18), (1, 30))
_SMALL_PREVIEWS: tuple[Distribution, ...] = ((16, 0), (32, 0), (1, 5), (33, 9))
_PREVIEWS: tuple[Distribution, ...] = ((1, 6), (65, 8), (321, 10), (1345, 12))
_RATIOS = {1: (1, 1), 2: (12, 10), 3: (4, 3), 4: (3, 2), 5: (16, 9), 6: (5, 4), 7: (2, 1)}
GRAY, _XYB = 1, 2  # color spaces
D65, _CUSTOM = 1, 2
_DAYLIGHT: Chromaticity = (0.3127, 0.329)
_WHITES: dict[int, Chromaticity] = {D65: _DAYLIGHT, 10: (1 / 3, 1 / 3), 11: (0.314, 0.351)}
_PRIMARIES: dict[int, Primaries] = {1: SRGB, 9: BT2020, 11: DISPLAY_P3}
SRGB_CURVE = 13
_COORDINATES: tuple[Distribution, ...] = ((0, 19), (524_288, 19), (1_048_576, 20), (2_097_152, 21))
_NITS = 255.0  # the luminance of white that pictures have by default
_WEIGHTS = (15, 55, 210)  # of upsampling by 2, 4 and 8
_OPSIN_NUMBERS = 16
_RELATIVE = 1  # a rendering intent


@frozen
class Depth:
    """The bits of a sample, and those of its exponent if it is a real number."""

    bits: int = 8
    exponent: int = 0


@frozen
class ExtraChannel:
    """A channel beside those of color. The colors of a picture may be multiplied by its alpha."""

    kind: int = ALPHA
    premultiplied: bool = False
    named: bool = False


@frozen
class Animation:
    """Ticks per second as a fraction, how often it plays, and if frames have time codes."""

    rate: int
    divisor: int
    plays: int
    timecodes: bool


@frozen
class Colors:
    """The color encoding: if it is gray, has a profile, or is a space that is told by numbers."""

    gray: bool = False
    profile: bool = False
    space: RgbSpace | None = None


@frozen
class Places:
    """The bits in which the header tells what a writer may change; empty if it does not."""

    color: tuple[int, int] = (0, 0)
    animation: tuple[int, int] = (0, 0)


@frozen(kw_only=True)
class Header:
    """The facts of a codestream. ``end`` is the bit after them, where the profile begins or the frames do."""

    width: int
    height: int
    orientation: int = 1
    preview: tuple[int, int] | None = None
    animation: Animation | None = None
    depth: Depth = Depth()
    extra: tuple[ExtraChannel, ...] = ()
    xyb: bool = True
    colors: Colors = Colors()
    places: Places = Places()
    end: int = 0

    @property
    def alpha(self) -> ExtraChannel | None:
        """The first channel that is alpha."""
        return next((channel for channel in self.extra if channel.kind == ALPHA), None)


def read_header(reader: BitReader) -> Header:
    """Read the header after the two bytes at the start of a codestream.

    Raises:
        CorruptImage: it is damaged.
    """
    reader.skip(8 * len(START))
    width, height = _read_size(reader)
    if reader.flag():
        return Header(width=width, height=height, end=_skip_transforms(reader, xyb=True))
    return _read_metadata(reader, width, height)


def _read_size(reader: BitReader) -> tuple[int, int]:
    small = reader.flag()
    return _sides(reader, lambda: 8 * (1 + reader.bits(5)) if small else reader.u32(*_SIDES))


def _read_preview(reader: BitReader) -> tuple[int, int]:
    small = reader.flag()
    return _sides(reader, lambda: 8 * reader.u32(*_SMALL_PREVIEWS) if small else reader.u32(*_PREVIEWS))


def _sides(reader: BitReader, side: Callable[[], int]) -> tuple[int, int]:
    height = side()
    ratio = reader.bits(3)
    if not ratio:
        return side(), height
    across, down = _RATIOS[ratio]
    return height * across // down, height


def _read_metadata(reader: BitReader, width: int, height: int) -> Header:
    orientation, preview, animation, animated = 1, None, None, (0, 0)
    more = reader.flag()
    if more:
        orientation = 1 + reader.bits(3)
        if reader.flag():
            _read_size(reader)  # at which it is to be shown
        if reader.flag():
            preview = _read_preview(reader)
        if reader.flag():
            animation, animated = reader.placed(lambda: _read_animation(reader))
    depth = _read_depth(reader)
    reader.flag()  # if 16 bits are enough for the numbers of a decoder
    extra = tuple(_read_extra(reader) for _ in range(reader.u32((0, 0), (1, 0), (2, 4), (1, 12))))
    xyb = reader.flag()
    colors, colored = reader.placed(lambda: _read_colors(reader))
    if more:
        nits = _read_white(reader)
        if colors.space and colors.space.transfer == "pq" and nits not in (0, _NITS):
            colors = attrs.evolve(colors, space=attrs.evolve(colors.space, peak=nits))
    reader.skip_extensions()
    return Header(
        width=width,
        height=height,
        orientation=orientation,
        preview=preview,
        animation=animation,
        depth=depth,
        extra=extra,
        xyb=xyb,
        colors=colors,
        places=Places(colored, animated),
        end=_skip_transforms(reader, xyb=xyb),
    )


def _read_animation(reader: BitReader) -> Animation:
    rate, divisor = reader.u32(*RATE), reader.u32(*RATE_DIVISOR)
    return Animation(rate, divisor, reader.u32(*PLAYS), reader.flag())


def _read_depth(reader: BitReader) -> Depth:
    if not reader.flag():
        depth = Depth(reader.u32(*DEPTHS))
    else:
        bits = reader.u32((32, 0), (16, 0), (24, 0), (1, 6))
        depth = Depth(bits, 1 + reader.bits(4))
    if not 1 <= depth.bits <= 32:
        raise reader.corrupt(f"its samples have {depth.bits} bits")
    return depth


def _read_extra(reader: BitReader) -> ExtraChannel:
    if reader.flag():
        return ExtraChannel()
    kind = reader.enum()
    _read_depth(reader)
    reader.u32((0, 0), (3, 0), (4, 0), (1, 3))  # how much smaller it is stored
    named = reader.skip_name()
    premultiplied = kind == ALPHA and reader.flag()
    if kind == SPOT:
        reader.skip(4 * 16)
    elif kind == _COLOR_FILTER:
        reader.u32((1, 0), (0, 2), (3, 4), (19, 8))
    return ExtraChannel(kind, premultiplied, named)


def _read_colors(reader: BitReader) -> Colors:
    if reader.flag():
        return Colors()
    profile, kind = reader.flag(), reader.enum()
    if profile:
        return Colors(kind == GRAY, profile=True)
    space = None if kind == _XYB else _read_space(reader, gray=kind == GRAY)
    reader.enum()  # the rendering intent
    return Colors(kind == GRAY, space=space)


def _read_space(reader: BitReader, *, gray: bool) -> RgbSpace | None:
    number = reader.enum()
    white = _read_point(reader) if number == _CUSTOM else _WHITES.get(number, _DAYLIGHT)
    number = 1 if gray else reader.enum()
    if number == _CUSTOM:
        red, green, blue = _read_point(reader), _read_point(reader), _read_point(reader)
    else:
        red, green, blue, _ = _PRIMARIES.get(number, SRGB)
    primaries = red, green, blue, white
    if reader.flag():
        gamma = reader.bits(24) / 1e7
        return from_gamma(primaries, gamma and 1 / gamma)
    curve, space = from_code_points(1, reader.enum()), from_gamma(primaries, None)
    return attrs.evolve(curve, primaries=space.primaries) if curve and space else curve or space


def _read_point(reader: BitReader) -> Chromaticity:
    packed = reader.u32(*_COORDINATES), reader.u32(*_COORDINATES)
    across, down = ((number >> 1) ^ -(number & 1) for number in packed)
    return across / 1e6, down / 1e6


def _read_white(reader: BitReader) -> float:
    """Read the luminance of white in cd/m2."""
    if reader.flag():
        return _NITS
    nits = reader.real()
    reader.skip(16)
    reader.flag()
    reader.skip(16)
    return nits


def _skip_transforms(reader: BitReader, *, xyb: bool) -> int:
    """Skip numbers of filters that decoders use, and return the bit after them."""
    if not reader.flag():
        if xyb and not reader.flag():
            reader.skip(16 * _OPSIN_NUMBERS)
        given = reader.bits(3)
        reader.skip(16 * sum(count for bit, count in enumerate(_WEIGHTS) if given >> bit & 1))
    return reader.position


def add_srgb(writer: BitWriter, *, gray: bool) -> None:
    """Add the color encoding of sRGB, or of gray with the same curve and white."""
    writer.bits(int(not gray), 1)  # everything is as usual
    if gray:
        writer.bits(0, 1)  # there is no profile
        writer.u32(GRAY, *ENUM)
        writer.u32(D65, *ENUM)
        writer.bits(0, 1)  # the curve is a number of a list
        writer.u32(SRGB_CURVE, *ENUM)
        writer.u32(_RELATIVE, *ENUM)
