"""Reading TIFF: compressions, samples of every type, planes and extra channels."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.errors import CorruptImage, UnsupportedFormat
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.directory import read_first_directory
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.reader import HeaderReader
from tests.formats.test_readers import read
from tests.support import encoded as files
from tests.support import handmade, photos, requires
from tests.support.perceptual import distance
from tests.support.photos import Pixels


@pytest.mark.parametrize("compression", ["lzma", "zstd", "jpeg", "packbits", "tiff_adobe_deflate"])
def test_tiff_compressions_are_right_or_refused(compression: str) -> None:
    try:
        data = handmade.pillow(files.photo(), "TIFF", compression=compression)
    except OSError as error:
        pytest.skip(f"Pillow's libtiff cannot write it: {error}")
    assert distance(read(data), files.photo()) <= (0.02 if compression == "jpeg" else 0)


@pytest.mark.parametrize("compression", ["lzma", "zstd"])
def test_damage_in_a_tiff_of_rare_compression_is_told_as_damage(compression: str) -> None:
    try:
        data = handmade.pillow(files.photo(), "TIFF", compression=compression)
    except OSError as error:
        pytest.skip(f"Pillow's libtiff cannot write it: {error}")
    middle = len(data) // 2
    with pytest.raises(CorruptImage, match="TIFF image is damaged"):
        read(data[:middle] + bytes(64) + data[middle + 64 :])


def test_a_tiff_in_webp_is_read() -> None:
    data = _tifffile(files.photo(), photometric="rgb", compression="webp")
    assert distance(read(data), files.photo()) < 0.05


@pytest.mark.parametrize("photometric", ["minisblack", "rgb"])
def test_a_lossless_jpeg_of_16_bits_is_read(photometric: str) -> None:
    import imagecodecs
    import tifffile

    pixels = np.ascontiguousarray(files.photo()[:64, :64].astype(np.uint16) * 257)
    pixels = pixels if photometric == "rgb" else np.ascontiguousarray(pixels[..., 0])
    strip = imagecodecs.jpeg8_encode(pixels, lossless=True, bitspersample=16)
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        writer.write(
            iter([strip]), shape=pixels.shape, dtype="uint16", photometric=photometric, compression="jpeg",
            rowsperstrip=64, bitspersample=16,
        )  # fmt: skip
    assert np.array_equal(read(file.getvalue()).numpy().reshape(pixels.shape), pixels)


@pytest.mark.parametrize("compression", ["jpegxl", "jpeg2000"])
def test_tiff_compressions_that_nothing_reads_are_refused(compression: str, tmp_path: Path) -> None:
    import tifffile

    path = tmp_path / "picture.tif"
    tifffile.imwrite(path, files.photo(), photometric="rgb", compression=compression)
    source = ByteSource(path)
    with pytest.raises(UnsupportedFormat, match="compression"):
        load(probe(source)).avg()


_SAMPLES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"]
_WIDE = ["uint64", "int64", "float64"]  # which libvips does not know


def _ramp(sample: str) -> Pixels:
    """4 x 8 steps from the lowest to the highest value of a type; of real numbers, from 0 to 1."""
    steps = np.linspace(0, 1, 32).reshape(4, 8)
    kind = np.dtype(sample)
    if kind.kind == "f":
        return steps.astype(kind)
    if kind.itemsize == 8:  # beyond the precision of the steps
        return np.left_shift(_ramp(sample.replace("64", "32")).astype(kind), 32)
    limits = np.iinfo(kind)
    return np.rint(steps * (int(limits.max) - int(limits.min)) + int(limits.min)).astype(kind)


def _mapped(samples: Pixels) -> Pixels:
    """What the rule makes of samples: the whole range of whole numbers, linear light of real ones."""
    if samples.dtype.kind == "f":
        linear = samples.astype(np.float64)
        curved = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
        return np.rint(curved * 65535)
    limits = np.iinfo(samples.dtype)
    share = (samples.astype(np.float64) - limits.min) / (int(limits.max) - int(limits.min))
    return np.rint(share * (255 if samples.itemsize == 1 else 65535))


def _negative(samples: Pixels) -> Pixels:
    """What samples mean if white is the lowest: of real numbers 1 - x in linear light."""
    return 1 - samples.astype(np.float64) if samples.dtype.kind == "f" else ~samples


def _tifffile(samples: Pixels, **options: Any) -> bytes:
    file = io.BytesIO()
    requires.module("tifffile").imwrite(file, samples, **options)
    return file.getvalue()


@pytest.mark.parametrize("compression", ["none", "deflate", "zstd"])
@pytest.mark.parametrize("sample", [*_SAMPLES, *_WIDE])
def test_tiff_samples_of_every_type(sample: str, compression: str) -> None:
    samples = _ramp(sample)
    found = read(_tifffile(samples, photometric="minisblack", compression=compression)).numpy()
    assert found.dtype == (np.uint8 if samples.itemsize == 1 else np.uint16)
    assert np.abs(found - _mapped(samples)).max() <= (5 if sample[0] == "f" else 1)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("sample", [*_SAMPLES, *_WIDE])
def test_tiff_samples_of_every_type_in_color(sample: str, order: str) -> None:
    samples = np.stack((_ramp(sample), _ramp(sample)[::-1], _ramp(sample)[:, ::-1]), axis=2)
    found = read(_tifffile(samples, photometric="rgb", byteorder=order)).numpy()
    assert np.abs(found - _mapped(samples)).max() <= (5 if sample[0] == "f" else 1)


@pytest.mark.parametrize("sample", [*_SAMPLES, *_WIDE])
def test_tiff_samples_of_every_type_with_white_as_the_lowest(sample: str) -> None:
    samples = _ramp(sample)
    found = read(_tifffile(samples, photometric="miniswhite")).numpy()
    assert np.abs(found - _mapped(_negative(samples))).max() <= (5 if sample[0] == "f" else 1)


@pytest.mark.parametrize("photometric", ["minisblack", "miniswhite"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("sample", [*_SAMPLES, *_WIDE])
def test_tiff_samples_in_zstandard(sample: str, order: str, photometric: str) -> None:
    samples = _ramp(sample)
    data = _tifffile(samples, photometric=photometric, byteorder=order, compression="zstd")
    meant = _negative(samples) if photometric == "miniswhite" else samples
    assert np.abs(read(data).numpy() - _mapped(meant)).max() <= (5 if sample[0] == "f" else 1)


@pytest.mark.parametrize("compression", ["zstd", "lzma"])
@pytest.mark.parametrize("tile", [None, (16, 32)])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("sample", ["uint16", "int16", "float16"])
@pytest.mark.parametrize("kind", ["gray and alpha", "rgb", "rgb and alpha", "cmyk"])
def test_tiff_colors_of_16_bits_stay_16_bits_in_rare_compressions(
    kind: str, sample: str, order: str, tile: tuple[int, int] | None, compression: str
) -> None:
    channels, photometric = {
        "gray and alpha": (2, "minisblack"),
        "rgb": (3, "rgb"),
        "rgb and alpha": (4, "rgb"),
        "cmyk": (4, "separated"),
    }[kind]
    ramp = np.resize(_ramp(sample), (50, 70))
    samples = np.stack([np.roll(ramp, 3 * channel, axis=1) for channel in range(channels)], axis=2)
    options: dict[str, Any] = {"photometric": photometric, "byteorder": order, "tile": tile}
    options |= {"extrasamples": ["unassalpha"]} if "alpha" in kind else {}
    expected = read(_tifffile(samples, **options)).numpy()
    assert expected.dtype == np.uint16
    for predictor in (False, True) if sample != "float16" else (False,):
        found = read(_tifffile(samples, **options, compression=compression, predictor=predictor))
        assert np.array_equal(found.numpy(), expected)


@pytest.mark.parametrize("sample", ["float16", "float32", "float64"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("photometric", ["minisblack", "miniswhite", "rgb"])
def test_numbers_in_a_tiff_that_are_not_finite_count_as_1(
    photometric: str, compression: str, sample: str
) -> None:
    numbers = np.array([[np.nan, -np.nan, np.inf, -np.inf, 0, 1]], sample)
    numbers = np.dstack([numbers] * 3) if photometric == "rgb" else numbers
    found = read(_tifffile(numbers, photometric=photometric, compression=compression)).numpy()
    white = [0, 0, 0, 0, 65535, 0] if photometric == "miniswhite" else [65535] * 4 + [0, 65535]
    assert np.array_equal(found.reshape(6, -1), np.transpose([white] * found.reshape(6, -1).shape[1]))


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "jpeg"])
def test_ycbcr_in_tiff_becomes_rgb(compression: str | None) -> None:
    picture = Image.fromarray(files.photo()).convert("YCbCr")
    data = handmade.pillow(picture, "TIFF", compression=compression)
    assert distance(read(data), files.photo()) < 0.02


@pytest.mark.parametrize("photometric", ["minisblack", "miniswhite"])
@pytest.mark.parametrize("bits", [1, 2, 4, 12])
def test_tiff_samples_of_few_bits(bits: int, photometric: str) -> None:
    steps = np.rint(np.linspace(0, 1, 32).reshape(4, 8) * (2**bits - 1))
    data = _tifffile(
        steps.astype(np.uint8 if bits < 8 else np.uint16), photometric=photometric, bitspersample=bits
    )
    found = read(data).numpy()
    steps = steps if photometric == "minisblack" else 2**bits - 1 - steps
    assert np.abs(found / np.iinfo(found.dtype).max - steps / (2**bits - 1)).max() < 1e-4


def test_tiff_samples_that_nothing_reads_are_not_called_damaged() -> None:
    data = _tifffile(np.zeros((4, 8), np.complex64), photometric="minisblack")
    with pytest.raises(UnsupportedFormat, match=r"complex .* of 64 bits .* 8 or 16 bits"):
        read(data)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("tile", [None, (16, 16)])
@pytest.mark.parametrize("compression", ["none", "lzw", "deflate", "zstd"])
@pytest.mark.parametrize("predictor", [False, True])
def test_tiff_of_64_bits_in_every_layout(
    order: str, tile: tuple[int, int] | None, compression: str, predictor: bool
) -> None:
    samples = np.tile(_ramp("float64"), (9, 5))
    pixels = np.stack((samples, samples[::-1], samples[:, ::-1], samples.T.reshape(samples.shape)), axis=2)
    data = _tifffile(
        pixels, photometric="rgb", extrasamples=["unassalpha"], byteorder=order, tile=tile,
        compression=compression, bigtiff=tile is None, predictor=predictor and compression != "none",
    )  # fmt: skip
    found = read(data)
    assert found.hasalpha()
    assert np.abs(found.numpy()[..., :3] - _mapped(pixels[..., :3])).max() <= 5
    assert np.abs(found.numpy()[..., 3] - np.rint(pixels[..., 3] * 65535)).max() <= 1


@pytest.mark.parametrize("planes", [False, True])
@pytest.mark.parametrize("compression", ["none", "deflate"])
def test_tiff_tiles_may_be_much_larger_than_the_image(compression: str, planes: bool) -> None:
    """libvips takes a tile of more than twice the side for damage."""
    stored = np.moveaxis(files.photo(), -1, 0) if planes else files.photo()
    data = _tifffile(
        np.ascontiguousarray(stored), photometric="rgb", tile=(1024, 1024), compression=compression,
        planarconfig="separate" if planes else "contig",
    )  # fmt: skip
    assert np.array_equal(read(data).numpy(), files.photo())
    assert probe(ByteSource(data)).info.decoded_pixels == 1024 * 1024


def test_tiff_tiles_of_more_than_100_megabytes_are_not_called_damaged() -> None:
    flat = np.full((3100, 3100, 3), 200, np.uint8)
    tiled = {"photometric": "rgb", "compression": "deflate", "compressionargs": {"level": 1}}
    assert (read(_tifffile(flat, tile=(6144, 6144), **tiled)).numpy() == 200).all()
    assert (read(_tifffile(flat.astype(np.uint32) << 24, tile=(3008, 3008), **tiled)).numpy() == 51200).all()


@pytest.mark.parametrize("tile", [(64, 64), None])
@pytest.mark.parametrize("kept", [0.4, 0.9])
def test_a_tiff_that_is_cut_is_damaged(kept: float, tile: tuple[int, int] | None) -> None:
    noise = np.random.default_rng(7).integers(0, 256, (256, 256, 3), np.uint8)
    data = _tifffile(noise, photometric="rgb", tile=tile)
    with pytest.raises(CorruptImage):
        read(data[: int(kept * len(data))])


def test_a_tiff_strip_of_more_than_50_megabytes_is_not_called_damaged() -> None:
    noise = np.random.default_rng(7).integers(0, 256, (4500, 4000, 3), np.uint8)
    options = {"compression": "deflate", "compressionargs": {"level": 1}, "rowsperstrip": len(noise)}
    found = read(_tifffile(noise, photometric="rgb", **options))
    assert (found.crop(0, 4400, 4000, 100).numpy() == noise[4400:]).all()


_PLANES = {
    "gray and alpha": ("minisblack", ["unassalpha"], 1),
    "negative and alpha": ("miniswhite", ["unassalpha"], 1),
    "RGB": ("rgb", [], 3),
    "RGBA": ("rgb", ["unassalpha"], 3),
    "RGBA and more": ("rgb", ["unspecified", "unassalpha", "unspecified"], 3),
    "CMYK": ("separated", [], 4),
}


@pytest.mark.parametrize(
    ("kind", "compression"),
    [
        *((kind, "deflate") for kind in _PLANES),
        *(("RGBA", compression) for compression in ("none", "lzw", "packbits", "zstd")),
    ],
)
@pytest.mark.parametrize("tile", [None, (16, 16)])
@pytest.mark.parametrize("sample", [*_SAMPLES, *_WIDE])
def test_tiff_planes(kind: str, sample: str, tile: tuple[int, int] | None, compression: str) -> None:
    """Alpha is straight, and of real numbers it is no light, so it keeps its value."""
    photometric, extra, colors = _PLANES[kind]
    planes = np.stack(
        [np.roll(np.tile(_ramp(sample), (9, 5)), 3 * i, axis=1) for i in range(colors + len(extra))]
    )
    data = _tifffile(
        planes, photometric=photometric, planarconfig="separate", extrasamples=extra, tile=tile,
        compression=compression, byteorder=">" if colors == 3 else "<", bigtiff=colors == 4,
    )  # fmt: skip
    expected = [_mapped(_negative(plane) if kind.startswith("neg") else plane) for plane in planes[:colors]]
    if "unassalpha" in extra:
        alpha = planes[colors + extra.index("unassalpha")]
        expected.append(np.rint(alpha.astype(float) * 65535) if sample[0] == "f" else _mapped(alpha))
    if sample[0] == "f" and kind == "CMYK":  # ink is no light either
        expected = [np.rint(plane.astype(float) * 65535) for plane in planes]
    image = read(data)
    assert image.hasalpha() == ("unassalpha" in extra)
    assert image.interpretation == "cmyk" or kind != "CMYK"
    assert np.abs(image.numpy() - np.moveaxis(np.stack(expected), 0, -1)).max() <= (
        5 if sample[0] == "f" else 1
    )


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("tile", [None, (16, 16)])
def test_lab_in_tiff_planes(tile: tuple[int, int] | None, bits: int) -> None:
    planes = np.random.default_rng(3).integers(0, 2**bits, (3, 32, 48)).astype(f"uint{bits}")
    found = read(_tifffile(planes, photometric="cielab", planarconfig="separate", tile=tile))
    lightness = planes[0] * (100 / (2**bits - 1))
    chroma = planes[1:].astype(f"int{bits}") / 2 ** (bits - 8)
    assert found.interpretation == "lab"
    assert np.allclose(found.numpy(), np.dstack((lightness, *chroma)), atol=1e-4)


@pytest.mark.parametrize("others", [0, 1])
def test_lab_with_transparency(others: int) -> None:
    """As in libvips#1634. Alpha has all 16 bits, although libvips reads them as signed."""
    alpha = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    lab = np.dstack([np.full((8, 8), level, np.uint16) for level in (32896, 15360, 10240)])
    plain = read(_tifffile(lab, photometric="cielab")).colourspace("srgb").numpy()
    samples = np.dstack([lab, alpha, *[alpha[::-1]] * others])
    kinds = ["unassalpha", *["unspecified"] * others]
    source = _tifffile(samples, photometric="cielab", extrasamples=kinds)
    shown = np.asarray(imgsvc.process(source, {"output": {"format": "png"}}).to_pil())
    assert np.abs(shown[..., 3] - alpha / 257).max() <= 1
    assert np.abs(shown[..., :3].astype(int) - plain)[shown[..., 3] > 0].max() <= 1


def test_premultiplied_lab_is_refused() -> None:
    """Nothing says what its colors are multiplied by."""
    samples = np.full((8, 8, 4), 9000, np.uint16)
    source = _tifffile(samples, photometric="cielab", extrasamples=["assocalpha"])
    with pytest.raises(UnsupportedFormat, match="Lab colors have transparency"):
        imgsvc.process(source)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("compression", ["none", "deflate", "zstd"])
def test_lab_as_in_icc_profiles_is_read_as_other_lab(compression: str, bits: int) -> None:
    """Its a and b are gray in the middle of their numbers, and not at 0."""
    lightness = np.linspace(20, 230, 64).reshape(8, 8).round()
    chroma = np.linspace(-30, 30, 64).reshape(8, 8).round()
    icclab = np.dstack([lightness, chroma + 128, 128 - chroma])
    icclab = icclab.astype(np.uint8) if bits == 8 else (icclab * 256).astype(np.uint16)
    reference = np.dstack([lightness, chroma, -chroma]).astype(np.int16).astype(np.uint8)
    expected = read(_tifffile(reference, photometric="cielab")).colourspace("srgb").numpy()
    found = read(_tifffile(icclab, photometric="icclab", compression=compression))
    assert np.abs(found.colourspace("srgb").numpy().astype(int) - expected).max() <= 1


def test_lab_that_nothing_reads_is_refused_in_a_sentence() -> None:
    with pytest.raises(UnsupportedFormat, match=r"Lab colors .* save it as RGB"):
        read(_tifffile(np.zeros((8, 8, 4), np.uint8), photometric="icclab", extrasamples=["unassalpha"]))
    with pytest.raises(UnsupportedFormat, match=r"photometric interpretation 10 .* save it as RGB"):
        read(_tifffile(np.zeros((8, 8, 3), np.uint8), photometric="itulab"))


def test_tiff_planes_keep_orientation_and_profile() -> None:
    planes = np.moveaxis(files.photo(), -1, 0)
    tags = [(274, 3, 1, 6, True), (34675, 7, len(files.profile()), files.profile(), True)]
    image = read(_tifffile(planes, photometric="rgb", planarconfig="separate", extratags=tags))
    assert np.array_equal(image.numpy(), files.photo())
    assert (image.get("orientation"), image.get("icc-profile-data")) == (6, files.profile())


@pytest.mark.parametrize(("kind", "rows"), [(3, 8), (8, 0), (8, -1)])
def test_tiff_planes_of_impossible_parts_are_damaged(kind: int, rows: int) -> None:
    planes = np.moveaxis(files.photo(), -1, 0)
    data = bytearray(_tifffile(planes, photometric="rgb", planarconfig="separate", rowsperstrip=16))
    start = read_first_directory(HeaderReader(ByteSource(data), "TIFF")).entries[278].start
    struct.pack_into("<HIh", data, start - 6, kind, 1, rows)
    with pytest.raises(CorruptImage, match="TIFF image is damaged"):
        read(bytes(data))


@pytest.mark.parametrize("order", ["separate", "contig"])
@pytest.mark.parametrize("photometric", ["rgb", "minisblack", "separated"])
@pytest.mark.parametrize("sample", [*_SAMPLES, *_WIDE])
def test_premultiplied_alpha_becomes_straight_in_samples_of_every_type(
    sample: str, photometric: str, order: str
) -> None:
    kind = np.dtype(sample)
    steps = np.tile(np.linspace(0, 1, 32), (4, 1))
    half = np.full_like(steps, 0.5)
    colors = {"minisblack": [steps], "rgb": [steps, 1 - steps, steps], "separated": [steps] * 4}[photometric]
    channels = np.stack([*(color / 2 for color in colors), half], axis=0 if order == "separate" else -1)
    if kind.kind != "f":
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        channels = np.rint(channels * (high - low)).clip(0, high - low) + low
    options = {"photometric": photometric, "planarconfig": order, "extrasamples": ["assocalpha"]}
    found = read(_tifffile(channels.astype(kind), **options)).numpy()
    linear = kind.kind == "f" and photometric != "separated"
    expected = _mapped(steps) if linear else np.rint(steps * np.iinfo(found.dtype).max)
    assert np.abs(found[..., 0] - expected).max() <= (16 if kind.kind == "f" else 2)
    assert np.abs(found[..., -1] / np.iinfo(found.dtype).max - 0.5).max() < 0.01


def test_premultiplied_alpha_in_a_rare_compression() -> None:
    samples = np.full((8, 8, 4), -16384, np.int16)
    found = read(
        _tifffile(samples, photometric="rgb", extrasamples=["assocalpha"], compression="lzma")
    ).numpy()
    assert (found == [65535, 65535, 65535, 16384]).all()


def test_premultiplied_alpha_becomes_straight() -> None:
    rgba = photos.deep(files.transparent())
    premultiplied = rgba.copy()
    premultiplied[..., :3] = np.rint(rgba[..., :3] * (rgba[..., 3:] / 65535))
    data = _tifffile(premultiplied, photometric="rgb", extrasamples=["assocalpha"])
    assert distance(read(data), rgba) < 0.001


@pytest.mark.parametrize(
    ("photometric", "extra", "kept"),
    [
        ("rgb", ["unspecified"], [0, 1, 2]),
        ("rgb", ["unspecified", "unspecified"], [0, 1, 2]),
        ("rgb", ["unassalpha"], [0, 1, 2, 3]),
        ("rgb", ["unspecified", "unassalpha"], [0, 1, 2, 4]),
        ("minisblack", ["unspecified"], [0]),
        ("minisblack", ["unspecified", "unassalpha"], [0, 2]),
        ("separated", ["unspecified"], [0, 1, 2, 3]),
        ("separated", ["unassalpha"], [0, 1, 2, 3, 4]),
    ],
)
def test_only_transparency_is_read_of_the_extra_channels_of_a_tiff(
    photometric: str, extra: list[str], kept: list[int]
) -> None:
    colors = {"rgb": 3, "minisblack": 1, "separated": 4}[photometric]
    pixels = np.random.default_rng(5).integers(0, 256, (20, 30, colors + len(extra)), np.uint8)
    data = _tifffile(pixels, photometric=photometric, planarconfig="contig", extrasamples=extra)
    image = read(data)
    assert np.array_equal(image.numpy().reshape(20, 30, -1), pixels[..., kept])
    assert image.hasalpha() == probe(ByteSource(data)).info.alpha == (len(kept) > colors)


@pytest.mark.parametrize("planes", ["contig", "separate"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_tiff_of_every_reader_is_not_turned(orientation: int, planes: str) -> None:
    pixels = files.photo() if planes == "contig" else np.moveaxis(files.photo(), -1, 0)
    tags = [(274, 3, 1, orientation, True)]
    data = _tifffile(pixels, photometric="rgb", planarconfig=planes, compression="zstd", extratags=tags)
    image = read(data)
    assert np.array_equal(image.numpy(), files.photo())
    stated = image.get("orientation") if image.get_typeof("orientation") else 1
    assert stated == orientation


@pytest.mark.parametrize("planes", ["contig", "separate"])
@pytest.mark.parametrize("compression", ["deflate", "zstd"])
def test_every_reader_of_tiff_keeps_exif(compression: str, planes: str) -> None:
    pixels = files.photo() if planes == "contig" else np.moveaxis(files.photo(), -1, 0)
    tags = [(33432, 2, 4, "Ann", True)]
    data = _tifffile(pixels, photometric="rgb", planarconfig=planes, compression=compression, extratags=tags)
    assert b"Ann" in read(data).get("exif-data")


@pytest.mark.parametrize(("extra", "alpha"), [(1, True), (2, False)])
def test_only_a_single_extra_channel_of_no_stated_kind_is_alpha(extra: int, alpha: bool) -> None:
    samples = np.dstack([files.photo(), *[files.photo()[..., :1]] * extra])
    stated = struct.pack("<HHI", 338, 3, extra)
    data = _tifffile(samples, photometric="rgb", extrasamples=["unspecified"] * extra)
    assert data.count(stated) == 1
    data = data.replace(stated, struct.pack("<HHI", 337, 3, extra))
    assert probe(ByteSource(data)).info.alpha == alpha
    assert np.array_equal(read(data).numpy(), samples[..., : 3 + alpha])
