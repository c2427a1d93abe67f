"""Writing: what each setting does, what is refused, and where the bytes go."""

from __future__ import annotations

import errno
import io
from typing import Any

import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.probe import probe
from imgsvc_core.codecs.readers import load
from imgsvc_core.codecs.readers.vips import to_array
from imgsvc_core.codecs.settings import LoadSettings, SaveSettings
from imgsvc_core.codecs.table import FORMATS, OUTPUT_NAMES
from imgsvc_core.codecs.writers import save
from imgsvc_core.codecs.writers.prepare import to_depth
from imgsvc_core.errors import (
    CorruptImage,
    OutputTooLarge,
    TargetError,
    UnsupportedFormat,
    UnsupportedOperation,
)
from tests.support import photos
from tests.support.decoded import decode
from tests.support.encoded import deep, encoded, gray, photo, transparent
from tests.support.handmade import vips
from tests.support.perceptual import distance

_WITH_QUALITY = [name for name in OUTPUT_NAMES if FORMATS[name].quality is not None]
_LOSSLESS = [name for name in OUTPUT_NAMES if FORMATS[name].lossless]


def write(image: pyvips.Image, format: str, **settings: Any) -> bytes:
    data = save(image, SaveSettings(format=format, **settings)).data
    assert data is not None
    return data


@pytest.mark.parametrize("format", _WITH_QUALITY)
def test_quality_trades_size_for_fidelity(format: str) -> None:
    picture = photos.astronaut()[:256, :256]
    sizes, distances = [], []
    for quality in (10, 50, 90):
        data = write(vips(picture), format, quality=quality)
        sizes.append(len(data))
        distances.append(distance(decode(format, data)[0], picture))
    assert sizes == sorted(sizes)
    assert distances == sorted(distances, reverse=True)


@pytest.mark.parametrize("format", OUTPUT_NAMES)
@pytest.mark.parametrize("effort", [0, 5, 9])
def test_effort_keeps_the_picture(format: str, effort: int) -> None:
    data = write(vips(photo()), format, effort=effort)
    assert distance(decode(format, data)[0], photo()) < 0.05


@pytest.mark.parametrize("format", ["png", "apng", "jpg", "webp"])
def test_effort_makes_files_smaller(format: str) -> None:
    picture = vips(photos.astronaut())
    assert len(write(picture, format, effort=9)) < len(write(picture, format, effort=0))


@pytest.mark.parametrize("format", _LOSSLESS)
@pytest.mark.parametrize("pixels", [photo(), gray(), transparent()], ids=["rgb", "gray", "alpha"])
def test_lossless_keeps_every_pixel(format: str, pixels: photos.Pixels) -> None:
    data = write(vips(pixels), format, lossless=True)
    source = ByteSource(data)
    image = load(source, probe(source), LoadSettings(sequential=False))
    assert distance(image, pixels) == 0


@pytest.mark.parametrize("format", ["jpg", "heic", "gif"])
def test_lossless_is_refused_where_there_is_no_such_thing(format: str) -> None:
    with pytest.raises(UnsupportedOperation, match="cannot be lossless"):
        write(vips(photo()), format, lossless=True)


@pytest.mark.parametrize("format", ["jpg", "png", "gif"])
@pytest.mark.parametrize("progressive", [None, True, False])
def test_progressive(format: str, progressive: bool | None) -> None:
    data = write(vips(photo()), format, progressive=progressive)
    assert probe(ByteSource(data)).interlaced == (format == "jpg" if progressive is None else progressive)


def test_jpeg_subsampling_follows_libjpeg() -> None:
    assert probe(ByteSource(write(vips(photo()), "jpg"))).subsample == "4:2:0"
    assert probe(ByteSource(write(vips(photo()), "jpg", quality=95))).subsample == "4:4:4"
    assert probe(ByteSource(write(vips(photo()), "jpg", quality=67))).quality == 67


@pytest.mark.parametrize("format", ["png", "apng", "tiff", "jp2"])
def test_sixteen_bits_stay_sixteen(format: str) -> None:
    data = write(vips(deep()), format, lossless=True)
    source = ByteSource(data)
    assert np.array_equal(load(source, probe(source)).numpy(), deep())


@pytest.mark.parametrize("format", ["heic", "avif"])
def test_sixteen_bits_become_ten(format: str) -> None:
    """A ramp too fine for 8 bits keeps more steps than those hold."""
    ramp = np.repeat(np.linspace(20_000, 40_000, 512).astype(np.uint16)[None], 64, axis=0)
    source = ByteSource(write(vips(np.dstack([ramp] * 3)), format, quality=95))
    info = probe(source)
    assert info.depth == 10
    image = load(source, info).numpy()
    assert len(np.unique(image[32, :, 1])) > 150
    assert np.abs(image.astype(int) - ramp[:, :, None]).max() < 400


@given(st.lists(st.integers(0, 65_535), min_size=1, max_size=60), st.sampled_from([8, 10, 12]))
def test_depth_is_rounded_not_cut(values: list[int], bits: int) -> None:
    samples = np.array([values], np.uint16)
    image = to_depth(vips(samples), bits)
    levels = np.rint(samples * ((2**bits - 1) / 65535)).astype(np.uint16)
    assert np.array_equal(to_array(image)[:, :, 0], levels << (16 - bits) if bits > 8 else levels)
    assert image.interpretation == ("grey16" if bits > 8 else "b-w")


@pytest.mark.parametrize("format", OUTPUT_NAMES)
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (3, 5)])
def test_tiny_pictures(format: str, size: tuple[int, int]) -> None:
    width, height = size
    pixels = np.full((height, width, 3), (200, 100, 50), np.uint8)
    decoded = decode(format, write(vips(pixels), format))[0]
    assert decoded.shape[:2] == (height, width)
    assert np.abs(decoded[..., :3].astype(int) - pixels).max() < 12


def test_heic_of_several_tiles_has_no_seams() -> None:
    """Above 2 megapixels the encoder works in tiles; sizes are odd so that the last ones are cut."""
    picture = photos.mosaic(1801, 1203)
    decoded = decode("heic", write(vips(picture), "heic"))[0]
    assert decoded.shape == picture.shape
    assert distance(decoded, picture) < 0.02
    error = np.abs(decoded.astype(int) - picture).mean(axis=(0, 2))
    assert error[[510, 511, 512, 513, 1023, 1024]].max() < 3 * error.mean() + 1


@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_bytes_go_to_a_target(format: str) -> None:
    target = io.BytesIO()
    result = save(vips(photo()), SaveSettings(format=format), target)
    assert result.data is None
    assert result.size == len(target.getvalue())
    assert target.getvalue() == write(vips(photo()), format)


class _FullDisk(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_a_full_disk_is_told(format: str) -> None:
    with pytest.raises(TargetError, match="No space left on device"):
        save(vips(photo()), SaveSettings(format=format), _FullDisk())  # type: ignore[arg-type]


def test_alpha_is_refused_where_there_is_none() -> None:
    with pytest.raises(UnsupportedOperation, match="flatten"):
        write(vips(transparent()), "jpg")


@pytest.mark.parametrize("format", ["jpg", "png", "webp"])
def test_other_color_spaces_are_refused(format: str) -> None:
    inks = vips(transparent()).copy(interpretation="cmyk")
    with pytest.raises(UnsupportedOperation, match="cmyk"):
        write(inks, format)


@pytest.mark.parametrize("format", [name for name in OUTPUT_NAMES if not FORMATS[name].animation])
def test_frames_are_refused_where_there_is_room_for_one(format: str) -> None:
    strip = vips(np.concatenate([photo(), photo()]))
    strip.set_type(pyvips.GValue.gint_type, "page-height", 64)
    with pytest.raises(UnsupportedOperation, match="2: choose one"):
        write(strip, format)


def test_too_long_sides_are_refused() -> None:
    with pytest.raises(OutputTooLarge, match="16383"):
        write(pyvips.Image.black(16_384, 1).copy(interpretation="b-w"), "webp")


def test_input_formats_are_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="psd"):
        write(vips(photo()), "psd")


@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_damage_met_while_writing_is_the_fault_of_the_source(format: str) -> None:
    source = ByteSource(encoded("png").data)
    cut = ByteSource(encoded("png").data[:-600])
    image = load(cut, probe(source))
    with pytest.raises(CorruptImage, match="damaged"):
        write(image, format)


@pytest.mark.parametrize("format", ["jpg", "png", "webp", "tiff", "avif"])
def test_streaming_source_to_target(format: str) -> None:
    source = ByteSource(encoded("png").data)
    image = load(source, probe(source), LoadSettings(sequential=True))
    data = write(image, format)
    assert distance(decode(format, data)[0], photo()) < 0.03


def test_aliases_name_formats_too() -> None:
    assert Image.open(io.BytesIO(write(vips(photo()), "JPEG"))).format == "JPEG"


@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_the_picture_itself_is_left_alone(format: str) -> None:
    image = vips(photo())
    image.set_type(pyvips.GValue.gint_type, "orientation", 3)
    write(image, format)
    assert image.get("orientation") == 3
