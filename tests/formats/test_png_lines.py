"""PNGs that the library compresses itself: every pixel as other decoders see it, in few bytes."""

from __future__ import annotations

import functools
import io
import zlib
from collections.abc import Callable

import numpy as np
import pytest
import pyvips
from PIL import Image

from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.png import deflating, lines
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import SaveSettings
from tests.support import photos
from tests.support.photos import Pixels, as_vips


def _encoded(pixels: Pixels, effort: int | None = None, *, photograph: bool = False) -> bytes:
    settings = SaveSettings(format="png", effort=effort, photograph=photograph)
    data = save(as_vips(pixels), settings).data
    assert data is not None
    return data


def _text() -> Pixels:
    """Return dense black and red strokes that repeat, with soft edges."""
    random = np.random.default_rng(5)
    letters = random.integers(0, 2, (20, 12, 9)) * 255
    page = letters[random.integers(0, 20, (25, 40))].transpose(0, 2, 1, 3).reshape(300, 360)
    soft = as_vips(page.astype(np.uint8)).gaussblur(0.6).numpy()
    return np.dstack([np.full_like(soft, 250), soft, soft])


def _slope() -> Pixels:
    row, column = np.mgrid[0:200, 0:300]
    return np.dstack([row + column // 3, column // 2, 255 - row]).astype(np.uint8)


def _dithered(colors: int) -> Pixels:
    reduced = Image.fromarray(photos.coffee()[:200, :300]).quantize(colors).convert("RGB")
    return np.asarray(reduced)


PICTURES: dict[str, Callable[[], Pixels]] = {
    "photograph": lambda: photos.coffee()[:150, :200], "gray": lambda: photos.camera()[:150, :200],
    "text": _text, "slope": _slope, "2 colors": lambda: _dithered(2), "9 colors": lambda: _dithered(9),
    "200 colors": lambda: _dithered(200), "transparent": lambda: photos.cut_out()[:200, :301],
    "16 bits": lambda: photos.deep(_slope()),
    "16 bits of gray": lambda: photos.deep(photos.camera()[:90, :91]),
    "small": lambda: photos.coffee()[150:190, 200:250],
    "one column": lambda: _slope()[:, :1].repeat(30, axis=0),
    "one line": lambda: _slope()[:1].repeat(30, axis=1),
}  # fmt: skip


@functools.cache
def _picture(name: str) -> Pixels:
    return PICTURES[name]().copy()


def _seen(data: bytes, like: Pixels) -> Pixels:
    image = pyvips.Image.pngload_buffer(data, fail_on="warning")
    return image.numpy().reshape(like.shape)


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("effort", [0, 3, None, 7, 9])
@pytest.mark.parametrize("installed", [True, False], ids=["libdeflate", "zlib"])
def test_every_pixel_is_kept(
    name: str, effort: int | None, installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if installed:
        pytest.importorskip("deflate")
    else:
        monkeypatch.setattr(deflating, "compressor", lambda: None)
    pixels = _picture(name)
    data = _encoded(pixels, effort)
    assert np.array_equal(_seen(data, pixels), pixels)
    if pixels.dtype == np.uint8:
        with Image.open(io.BytesIO(data)) as image:
            shown = image.convert({2: "L", 3: "RGB", 4: "RGBA"}[3 if pixels.ndim == 2 else pixels.shape[2]])
        if pixels.ndim == 3:
            assert np.array_equal(np.asarray(shown), pixels)


def test_the_best_filters_compare_lines_with_those_of_another_block() -> None:
    """Each sample is half of the one before it, so the mean of it and of nothing fits if no line is above."""
    pixels = np.tile(255 >> np.arange(9), (400, 20)).astype(np.uint8)[..., None]
    height, width, _ = pixels.shape
    filtered = lines.filtered(lines.Stored.plainly(pixels).lines(), 1, "all")
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\0\0\0\0"
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(filtered)), (b"IEND", b""))
    data = png.SIGNATURE + b"".join(png.make_chunk(*chunk) for chunk in chunks)
    assert np.array_equal(_seen(data, pixels), pixels)
    assert not filtered[1:, 1:].any()


@pytest.mark.parametrize("name", ["none", "sub", "avg"])
@pytest.mark.parametrize("distance", [1, 3, 8])
def test_filters_are_those_of_libpng(name: str, distance: int) -> None:
    """Also where a picture is filtered in several blocks of lines."""
    kinds = {1: ("uchar", 1), 3: ("uchar", 3), 8: ("ushort", 4)}
    samples, bands = kinds[distance]
    random = np.random.default_rng(distance)
    pixels = random.integers(0, 256 if samples == "uchar" else 65536, (400, 130, bands), np.int64)
    pixels = pixels.astype(np.uint8 if samples == "uchar" else np.uint16)
    theirs = as_vips(pixels).pngsave_buffer(compression=0, filter=name, keep="none")
    reader = HeaderReader(ByteSource(theirs), "PNG")
    packed = b"".join(
        png.read_content(reader, chunk) for chunk in png.read_chunks(reader) if chunk.kind == b"IDAT"
    )

    own = lines.filtered(lines.Stored.plainly(pixels).lines(), distance, name)
    found = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(own.shape)
    assert np.array_equal(own[1:, 1:], found[1:, 1:])


@pytest.mark.parametrize(
    ("name", "share"), [("text", 0.75), ("slope", 0.8), ("9 colors", 0.9), ("200 colors", 0.8)]
)
def test_drawings_are_far_smaller_than_by_libvips(name: str, share: float) -> None:
    pytest.importorskip("deflate")
    pixels = _picture(name)
    assert len(_encoded(pixels)) < share * len(as_vips(pixels).pngsave_buffer(keep="none"))


@pytest.mark.parametrize("photograph", [True, False])
def test_photographs_are_no_larger_than_by_libvips(photograph: bool) -> None:
    pixels = _picture("photograph")
    theirs = as_vips(pixels).pngsave_buffer(keep="none", filter="avg", compression=3)
    assert len(_encoded(pixels, photograph=photograph)) < 1.02 * len(theirs)


@pytest.mark.parametrize("name", ["photograph", "text", "9 colors", "slope"])
def test_more_effort_makes_fewer_bytes(name: str) -> None:
    sizes = [len(_encoded(_picture(name), effort)) for effort in (0, None, 9)]
    assert sizes == sorted(sizes, reverse=True)


def test_usual_colors_come_first_and_opaque_ones_last() -> None:
    pixels = np.zeros((80, 80, 4), np.uint8)
    pixels[:, :, 3] = 255
    pixels[:3], pixels[3:5], pixels[5:6, :9] = (9, 9, 9, 100), (200, 0, 0, 255), (0, 0, 0, 0)
    indexed = deflating.palette.index_exactly(pixels, 256)
    assert indexed is not None
    ordered = indexed.by_frequency()
    assert ordered.colors.tolist() == [[9, 9, 9, 100], [0, 0, 0, 0], [0, 0, 0, 255], [200, 0, 0, 255]]
    assert np.array_equal(ordered.colors[ordered.numbers], pixels)
