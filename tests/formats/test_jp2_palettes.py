"""JPEG 2000 with palettes: of any depth, with alpha."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.errors import CorruptImage, UnsupportedFormat
from imgsvc_core.formats.boxes import make_box
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.settings import LoadSettings
from tests.support.handmade import pillow
from tests.support.photos import Pixels

_HEIGHT, _WIDTH = 40, 52
_COLORS = np.array([(220, 0, 0), (0, 200, 0), (10, 20, 220), (255, 255, 255)])
_ALPHA = np.array([[255], [128], [64], [0]])
_RGBA = np.hstack((_COLORS, _ALPHA))
_SRGB, _GRAY, _CMYK = 16, 17, 12
_COLOR, _OPACITY, _PREMULTIPLIED, _WHOLE = 0, 1, 2, 0
_IN_ORDER = ((0, _COLOR, 1), (1, _COLOR, 2), (2, _COLOR, 3), (3, _OPACITY, _WHOLE))


def _numbers() -> Pixels:
    """Numbers of colors, every one beside every other."""
    return np.random.default_rng(1).integers(0, 4, (_HEIGHT, _WIDTH)).astype(np.uint8)


def _file(
    entries: Any,
    *,
    columns: Sequence[int] | None = None,
    channels: Sequence[tuple[int, int, int]] = (),
    bits: int = 8,
    space: int = _SRGB,
    samples: Pixels | None = None,
    mapping: Sequence[tuple[int, int, int]] | None = None,
) -> bytes:
    """A file of a codestream, a palette of ``entries``, and which of its columns the channels are."""
    width = len(entries[0])
    code = "B" if bits <= 8 else "H"
    rows = b"".join(struct.pack(f">{width}{code}", *map(int, row)) for row in entries)
    mapping = mapping or [(0, 1, column) for column in (columns or range(width))]
    boxes = [
        make_box(b"ihdr", struct.pack(">IIHBBBB", _HEIGHT, _WIDTH, 1, 7, 7, 0, 0)),
        make_box(b"colr", b"\1\0\0" + struct.pack(">I", space)),
        make_box(b"pclr", struct.pack(">HB", len(entries), width) + bytes([bits - 1]) * width + rows),
        make_box(b"cmap", b"".join(struct.pack(">HBB", *channel) for channel in mapping)),
    ]
    if channels:
        described = b"".join(struct.pack(">HHH", *channel) for channel in channels)
        boxes.append(make_box(b"cdef", struct.pack(">H", len(channels)) + described))
    pixels = Image.fromarray(_numbers() if samples is None else samples)
    stream = pillow(pixels, "JPEG2000", no_jp2=True, irreversible=False, mct=0)
    start = make_box(b"jP  ", b"\r\n\x87\n") + make_box(b"ftyp", b"jp2 \0\0\0\0jp2 ")
    return start + make_box(b"jp2h", b"".join(boxes)) + make_box(b"jp2c", stream)


def _read(data: bytes, scale: float = 1.0) -> Pixels:
    source = ByteSource(data)
    picture = probe(source)
    info = picture.info
    image = load(picture, LoadSettings(sequential=False, scale=scale))
    assert (info.colorspace, info.alpha) == ("palette", image.hasalpha())
    return image.numpy().reshape(_HEIGHT, _WIDTH, image.bands)


_FILES = {
    "RGB": (_file(_COLORS), _COLORS),
    "RGB and alpha (Pillow#8256)": (_file(_RGBA, channels=_IN_ORDER), _RGBA),
    "alpha without being told": (_file(_RGBA), _RGBA),
    "channels in another order": (
        _file(_COLORS[:, ::-1], channels=((0, _COLOR, 3), (1, _COLOR, 2), (2, _COLOR, 1))), _COLORS,
    ),
    "alpha first": (
        _file(_RGBA[:, [3, 0, 1, 2]], channels=((0, _OPACITY, _WHOLE), *((k, _COLOR, k) for k in (1, 2, 3)))),
        _RGBA,
    ),
    "gray": (_file(_COLORS[:, 1:2], space=_GRAY), _COLORS[:, 1:2]),
    "gray and alpha": (
        _file(_RGBA[:, [1, 3]], space=_GRAY, channels=((0, _COLOR, 1), (1, _OPACITY, _WHOLE))),
        _RGBA[:, [1, 3]],
    ),
    "5 bits": (_file(_COLORS >> 3, bits=5), np.rint((_COLORS >> 3) * (255 / 31))),
}  # fmt: skip


@pytest.mark.parametrize("name", _FILES)
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_every_palette_gives_its_colors(name: str, scale: float) -> None:
    """At any scale: numbers of colors have no mean."""
    data, colors = _FILES[name]
    assert np.array_equal(_read(data, scale), colors.astype(int)[_numbers()])


def test_deep_columns_keep_their_bits() -> None:
    deep = _COLORS * 257 - (_COLORS > 0)
    found = _read(_file(deep, bits=16))
    assert found.dtype == np.uint16
    assert np.array_equal(found, deep[_numbers()])


@pytest.mark.parametrize("columns", [[2, 1, 0], [0, 1, 7], [2, 1, 1]])
def test_columns_in_another_order_are_refused(columns: list[int]) -> None:
    """OpenJPEG takes them for damage."""
    with pytest.raises(UnsupportedFormat, match="another order"):
        imgsvc.inspect(_file(_COLORS, columns=columns))


def test_a_palette_behind_its_channels_is_refused() -> None:
    data = _file(_COLORS)
    palette, mapping, end = (data.index(kind) - 4 for kind in (b"pclr", b"cmap", b"jp2c"))
    with pytest.raises(UnsupportedFormat, match="another order"):
        imgsvc.inspect(data[:palette] + data[mapping:end] + data[palette:mapping] + data[end:])


def test_premultiplied_entries_are_divided() -> None:
    stated = np.rint(_RGBA * np.hstack((np.repeat(_ALPHA, 3, axis=1) / 255, np.ones((4, 1)))))
    found = _read(_file(stated, channels=(*_IN_ORDER[:3], (3, _PREMULTIPLIED, _WHOLE)))).astype(int)
    visible = found[..., 3] > 0
    assert np.abs(found - _RGBA[_numbers()])[visible].max() <= 2


def test_numbers_beyond_the_palette_are_its_last_color() -> None:
    assert np.array_equal(_read(_file(_COLORS[:2])), _COLORS[np.minimum(_numbers(), 1)])


def test_results_are_transparent() -> None:
    result = imgsvc.process(_FILES["RGB and alpha (Pillow#8256)"][0], {"output": {"format": "png"}})
    assert result.output.alpha


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": [0, 1]},
        {"channels": ((0, _COLOR, 1), (9, _COLOR, 2), (2, _COLOR, 3))},
        {"channels": ((0, _COLOR, 1),)},
        {"mapping": [(0, 1, 0), (0, 1, 1), (5, 1, 2)]},
    ],
)
def test_impossible_palettes_are_damage(wrong: dict[str, Any]) -> None:
    with pytest.raises(CorruptImage):
        _read(_file(_COLORS, **wrong))


def test_a_palette_deeper_than_files_may_be_is_damage() -> None:
    with pytest.raises(CorruptImage, match="its palette is impossible"):
        imgsvc.inspect(_file(_COLORS, bits=17))


def test_other_color_spaces_are_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="neither gray nor RGB"):
        _read(_file(_RGBA, space=_CMYK))
