"""Writing: what each setting does, what is refused, and where the bytes go."""

from __future__ import annotations

import errno
import io
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from imgsvc_core.errors import (
    CorruptImage,
    OutputTooLarge,
    TargetError,
    UnsupportedFormat,
    UnsupportedOperation,
)
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.content import (
    Examined,
    colored_edges,
    colored_edges_by_libvips,
    sampled,
    smooth_share,
)
from imgsvc_core.formats.heif import pillow_writing
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import LoadSettings, SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES, codec_effort
from imgsvc_core.formats.vips import set_int, to_array, to_depth
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
    image = load(probe(source), LoadSettings(sequential=False))
    assert distance(image, pixels) == 0


@pytest.mark.parametrize("format", ["jpg", "heic", "gif"])
def test_lossless_is_refused_where_there_is_no_such_thing(format: str) -> None:
    with pytest.raises(UnsupportedOperation, match="cannot be lossless"):
        write(vips(photo()), format, lossless=True)


@pytest.mark.parametrize("format", ["jpg", "png", "gif"])
@pytest.mark.parametrize("progressive", [None, True, False])
def test_progressive(format: str, progressive: bool | None) -> None:
    data = write(vips(gray()), format, progressive=progressive)
    assert probe(ByteSource(data)).info.interlaced == (
        format == "jpg" if progressive is None else progressive
    )


def test_the_quality_of_jpeg_is_that_of_its_tables() -> None:
    assert probe(ByteSource(write(vips(photo()), "jpg", quality=67, progressive=True))).info.quality == 67


def drawing() -> photos.Pixels:
    """Thin colored lines on white, with transparent ground at the right."""
    pixels = np.full((120, 160, 4), 255, np.uint8)
    for row in range(0, 120, 6):
        pixels[row : row + 2, :120:5] = (220, 20, 40, 255)
        pixels[row + 3, 2:120:7] = (10, 60, 230, 255)
    pixels[:, 130:] = 0
    return pixels


def subsampling_of(format: str, pixels: photos.Pixels, **settings: Any) -> str | None:
    return probe(ByteSource(write(vips(pixels), format, **settings))).info.subsample


_WITH_SUBSAMPLING = [name for name in OUTPUT_NAMES if len(FORMATS[name].subsamplings) == 2]


@pytest.mark.parametrize("format", _WITH_SUBSAMPLING)
@pytest.mark.parametrize(("asked", "stored"), [("420", "4:2:0"), ("444", "4:4:4")])
def test_color_has_the_resolution_that_is_asked_for(format: str, asked: str, stored: str) -> None:
    for pixels in (photos.coffee()[:100, :150].copy(), drawing()[..., :3].copy()):
        for quality in (50, 95):
            assert subsampling_of(format, pixels, subsampling=asked, quality=quality) == stored


@pytest.mark.parametrize("format", _WITH_SUBSAMPLING)
@pytest.mark.parametrize("deep", [False, True], ids=["8 bits", "16 bits"])
def test_pictures_with_colored_lines_keep_all_color(format: str, deep: bool) -> None:
    lines, photograph = drawing()[..., :3].copy(), photos.coffee()[:200, :300].copy()
    if deep:
        lines, photograph = photos.deep(lines), photos.deep(photograph)
    assert subsampling_of(format, lines) == "4:4:4"
    usual = "4:4:4" if format == "avif" and not deep else "4:2:0"
    assert subsampling_of(format, lines, photograph=True) == usual
    assert subsampling_of(format, photograph) == usual
    assert subsampling_of(format, photograph, quality=90) == "4:4:4"


@pytest.mark.parametrize("name", photos.COLOR)
def test_photographs_have_no_colored_lines(name: str) -> None:
    pixels = photos.as_vips(photos.photo(name))
    for factor in (1, 0.5):
        assert colored_edges(sampled(pixels.resize(factor))) < 0.003


def test_colors_of_transparent_pixels_are_no_edges() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (80, 80, 4), np.uint8)
    pixels[..., 3] = 0
    assert colored_edges(sampled(vips(pixels))) == 0
    pixels[..., 3] = 255
    assert colored_edges(sampled(vips(pixels))) > 0.5


@given(
    width=st.integers(2, 300),
    height=st.integers(1, 300),
    bands=st.integers(3, 4),
    deep=st.booleans(),
    seed=st.integers(0, 99),
)
def test_colored_lines_are_the_same_without_numpy(
    width: int, height: int, bands: int, deep: bool, seed: int
) -> None:
    most = 65_536 if deep else 256
    pixels = np.random.default_rng(seed).integers(0, most, (height, width, bands))
    image = vips(pixels.astype(np.uint16 if deep else np.uint8))
    assert colored_edges_by_libvips(image) == pytest.approx(colored_edges(sampled(image)), abs=1e-9)


@given(
    width=st.integers(2, 300),
    height=st.integers(1, 300),
    levels=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_smooth_neighbors_are_the_same_without_numpy(width: int, height: int, levels: int, seed: int) -> None:
    """Differences of one level count upwards and downwards, and black and white differ."""
    values = np.random.default_rng(seed).integers(0, levels, (height, width, 3)) - levels // 2
    image = vips((values % 256).astype(np.uint8))
    assert smooth_share(image) == pytest.approx(Examined(image, "420").smooth_share(), abs=1e-9)


def test_colored_lines_stay_sharp_in_webp() -> None:
    lines = drawing()[:, :120, :3].copy()
    blurred, sharp = (write(vips(lines), "webp", **settings) for settings in ({"subsampling": "420"}, {}))
    assert distance(decode("webp", sharp)[0], lines) < 0.8 * distance(decode("webp", blurred)[0], lines)


def test_text_is_small_in_avif() -> None:
    """Its letters are stored once, unless another library writes it."""
    text = np.tile(drawing()[:, :120, :3], (3, 4, 1)).copy()
    small = write(vips(text), "avif")
    large = vips(text).heifsave_buffer(compression="av1", Q=60, effort=2, subsample_mode="off", keep="none")
    assert len(small) < 0.5 * len(large)
    assert distance(decode("avif", small)[0], text) < 1.1 * distance(decode("avif", large)[0], text)


def test_avif_without_the_encoder_of_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pillow_writing, "has_avif", lambda: False)
    assert distance(decode("avif", write(vips(photo()), "avif"))[0], photo()) < 0.05


@pytest.mark.parametrize(("height", "taken"), [(4000, True), (4001, False)])
def test_only_pictures_of_little_memory_are_for_the_encoder_of_pillow(height: int, taken: bool) -> None:
    """It holds half as much again of all pixels."""
    image = pyvips.Image.black(4000, height, bands=3)
    assert pillow_writing.suits(image, SaveSettings(format="avif")) is taken


def test_threads_change_no_byte_of_an_avif() -> None:
    made = []
    for threads in (1, 2, 3):
        picture = vips(photos.coffee()).copy()
        set_int(picture, "concurrency", threads)
        made.append(write(picture, "avif"))
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize(
    ("pixels", "settings", "effort"),
    [(photo, {}, 3), (transparent, {}, 3), (photo, {"lossless": True}, 2), (deep, {}, 2)],
    ids=["small", "alpha", "lossless", "10 bits"],
)
def test_avifs_of_pillow_take_more_effort(
    pixels: Callable[[], photos.Pixels], settings: dict[str, Any], effort: int
) -> None:
    image = vips(pixels())
    assert write(image, "avif", **settings) == write(image, "avif", effort=effort, **settings)
    assert write(image, "avif", **settings) != write(image, "avif", effort=5 - effort, **settings)


@pytest.mark.parametrize(
    ("pixels", "settings", "effort"),
    [
        (photo, {}, 7), (lambda: np.tile(photo(), (20, 20, 1)), {}, 7), (transparent, {}, 6),
        (photo, {"lossless": True}, 6),
    ],
    ids=["small", "large", "alpha", "lossless"],
)  # fmt: skip
def test_opaque_webps_with_loss_take_more_effort(
    pixels: Callable[[], photos.Pixels], settings: dict[str, Any], effort: int
) -> None:
    image = vips(pixels())
    assert write(image, "webp", **settings) == write(image, "webp", effort=effort, **settings)
    assert write(image, "webp", **settings) != write(image, "webp", effort=13 - effort, **settings)


@pytest.mark.parametrize("effort", [0, 6, 9])
@pytest.mark.parametrize(
    "pixels", [photos.coffee()[::2, ::2], photos.cut_out("cat")[::3, ::3]], ids=["opaque", "transparent"]
)
def test_a_small_webp_is_the_one_that_libvips_makes(pixels: photos.Pixels, effort: int) -> None:
    picture = vips(pixels)
    ours = write(picture, "webp", quality=70, effort=effort, subsampling="420")
    theirs = picture.webpsave_buffer(Q=70, effort=codec_effort("webp", effort), keep="none")
    assert len(ours) == pytest.approx(len(theirs), rel=0.01)
    difference = decode("webp", ours)[0].astype(int) - decode("webp", theirs)[0]
    assert np.abs(difference).mean() < 0.1


@pytest.mark.parametrize(("pixels", "filters"), [(drawing(), {0}), (photos.coffee(), {3})])
def test_the_filter_of_png_suits_the_picture(pixels: photos.Pixels, filters: set[int]) -> None:
    assert line_filters(write(vips(pixels), "png")) <= filters | {0}
    assert filters <= line_filters(write(vips(pixels), "png"))


def line_filters(data: bytes) -> set[int]:
    """The filters of the lines of a PNG that is not interlaced (PNG specification, chapter 9)."""
    reader = HeaderReader(ByteSource(data), "PNG")
    head = png.read_head(reader)
    lines = zlib.decompress(
        b"".join(png.read_content(reader, part) for part in png.read_chunks(reader) if part.kind == b"IDAT")
    )
    return set(lines[:: 1 + head.width * head.bits // 8])


def test_the_least_effort_compresses_too() -> None:
    picture = vips(np.zeros((500, 500, 3), np.uint8))
    assert len(write(picture, "png", effort=0)) < 10_000


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("colors", [2, 16])
def test_a_dithered_png_is_no_larger_than_without_filters(mode: str, colors: int) -> None:
    coffee = Image.fromarray(photos.coffee())
    dithered = coffee.quantize(palette=coffee.quantize(colors)).convert(mode)
    picture = vips(np.asarray(dithered))
    assert len(write(picture, "png")) <= 1.01 * len(picture.pngsave_buffer(filter="none", keep="none"))


def gradient(*channels: tuple[int, int]) -> pyvips.Image:
    """A picture whose channels grow by so many levels in each 100 columns and rows."""
    column, row = np.meshgrid(np.arange(600), np.arange(400))
    return vips(np.stack([(column * a + row * b) // 400 for a, b in channels], axis=-1).astype(np.uint8))


@pytest.mark.parametrize(
    "channels", [((100, 60),), ((100, 0), (0, 150), (40, 40)), ((90, 50), (90, 50), (20, 20))]
)
def test_more_effort_makes_a_gradient_smaller(channels: tuple[tuple[int, int], ...]) -> None:
    sizes = [len(write(gradient(*channels), "png", effort=effort)) for effort in (0, 3, 6, 9)]
    assert all(more <= 1.02 * less for less, more in pairwise(sizes))
    unfiltered = gradient(*channels).pngsave_buffer(filter="none", keep="none")
    assert sizes[2] < 1.05 * len(unfiltered)


def few_colors(count: int, size: tuple[int, int], *, alpha: bool) -> photos.Pixels:
    """Noise of so many colors; it has an alpha channel also if the only color is opaque."""
    random = np.random.default_rng(count)
    colors = random.permutation(1 << 16)[:count].astype("<u4").view(np.uint8).reshape(-1, 4).copy()
    colors[:, 2:] = colors[:, :2] if alpha else 255
    numbers = random.integers(0, count, size)
    return np.ascontiguousarray(colors[numbers][..., : 4 if alpha else 3])


@pytest.mark.parametrize("count", [2, 3, 16, 17, 256])
@pytest.mark.parametrize("alpha", [False, True], ids=["opaque", "alpha"])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("size", [(57, 61), (137, 241)])
def test_few_colors_are_stored_as_a_palette(
    count: int, alpha: bool, progressive: bool, size: tuple[int, int]
) -> None:
    pixels = few_colors(count, size, alpha=alpha)
    data = write(vips(pixels), "png", progressive=progressive)
    picture = probe(ByteSource(data))
    facts = picture.info
    assert (facts.colorspace, facts.interlaced, facts.alpha) == ("palette", progressive, alpha)
    for decoded in (load(picture).numpy(), decoded_by_pillow(data, pixels.shape[2])):
        assert np.array_equal(decoded, pixels)
    bits = png.read_head(HeaderReader(ByteSource(data), "PNG")).bits
    assert bits == next(bits for bits in (1, 2, 4, 8) if count <= 1 << bits)
    plain = vips(pixels).pngsave_buffer(filter="none", keep="none", interlace=progressive)
    assert len(data) < len(plain)


def decoded_by_pillow(data: bytes, bands: int) -> photos.Pixels:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert({1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[bands]))


@pytest.mark.parametrize(("levels", "bits"), [((0, 255), 1), ((0, 85, 170, 255), 2), (range(0, 256, 17), 4)])
@pytest.mark.parametrize("size", [(40, 41), (140, 141)])
def test_grays_at_equal_distances_need_no_palette(levels: Any, bits: int, size: tuple[int, int]) -> None:
    pixels = np.array(levels, np.uint8)[np.random.default_rng(0).integers(0, 1 << bits, size)]
    data = write(vips(pixels), "png")
    head = png.read_head(HeaderReader(ByteSource(data), "PNG"))
    assert (head.bits, b"PLTE" in data, probe(ByteSource(data)).info.colorspace) == (bits, False, "gray")
    assert np.array_equal(decoded_by_pillow(data, 1), pixels)


@pytest.mark.parametrize("size", [(40, 41), (140, 141)])
def test_black_and_white_in_color_has_a_palette(size: tuple[int, int]) -> None:
    """Its profile is one of color."""
    black = np.random.default_rng(0).integers(0, 2, size).astype(np.uint8)
    pixels = np.repeat(255 * black[..., None], 3, axis=2)
    assert probe(ByteSource(write(vips(pixels), "png"))).info.colorspace == "palette"


@pytest.mark.parametrize("format", [name for name in OUTPUT_NAMES if FORMATS[name].alpha])
def test_opaque_alpha_is_told_if_it_is_in_the_file(format: str) -> None:
    """Some encoders leave it out."""
    opaque = np.dstack((photo(), np.full(photo().shape[:2], 255, np.uint8)))
    result = save(vips(opaque), SaveSettings(format=format, quality=50))
    assert result.data is not None
    assert result.info.alpha == probe(ByteSource(result.data)).info.alpha


@pytest.mark.parametrize("alpha", [255, 128])
@pytest.mark.parametrize("size", [(40, 41), (140, 141)])
def test_a_palette_keeps_the_alpha_channel(alpha: int, size: tuple[int, int]) -> None:
    pixels = np.full((*size, 4), (200, 30, 10, alpha), np.uint8)
    pixels[5:20, 5:20, :3] = 255
    data = write(vips(pixels), "png")
    picture = probe(ByteSource(data))
    facts = picture.info
    assert (facts.colorspace, facts.alpha) == ("palette", True)
    assert np.array_equal(load(picture).numpy(), pixels)


@pytest.mark.parametrize(
    "pixels",
    [photos.coffee(), photos.deep(drawing()), photos.camera(), few_colors(257, (300, 300), alpha=False)],
)
def test_no_palette_for_more_colors_or_bits(pixels: photos.Pixels) -> None:
    data = write(vips(pixels), "png")
    assert b"PLTE" not in data
    assert np.array_equal(decode("png", data)[0].squeeze(), pixels.squeeze())


def test_no_palette_where_it_takes_more_bytes() -> None:
    """Differences between the neighbors of a slope repeat, and its colors do not."""
    column, row = np.meshgrid(np.arange(300), np.arange(300))
    levels = ((column * 3 + row * 7) // 11 % 256).astype(np.uint8)
    slope = np.stack([levels, levels, 255 - levels], axis=2)
    data = write(vips(slope), "png")
    assert b"PLTE" not in data
    assert len(data) < len(vips(slope).pngsave_buffer(palette=True, keep="none"))


def test_colors_that_were_not_examined_are_kept() -> None:
    """A few pixels are examined first: what the others have counts, too."""
    pixels = np.zeros((1000, 1001, 3), np.uint8)
    pixels[777, 300:900] = few_colors(600, (1, 600), alpha=False)[0]
    assert np.array_equal(decode("png", write(vips(pixels), "png"))[0], pixels)


@pytest.mark.parametrize("alpha", [False, True])
def test_animations_of_few_colors_have_a_palette(alpha: bool) -> None:
    frames = few_colors(13, (3, 60, 80), alpha=alpha)
    image = vips(frames.reshape(180, 80, -1)).copy()
    image.set_type(pyvips.GValue.gint_type, "page-height", 60)
    image.set_type(pyvips.GValue.array_int_type, "delay", [40, 50, 60])
    data = write(image, "apng")
    picture = probe(ByteSource(data))
    facts = picture.info
    assert (facts.colorspace, facts.frames, facts.delays) == ("palette", 3, (40, 50, 60))
    found = load(picture, LoadSettings(all_frames=True)).numpy()
    assert np.array_equal(found, frames.reshape(180, 80, -1))
    with Image.open(io.BytesIO(data)) as shown:
        for number, frame in enumerate(frames):
            shown.seek(number)
            assert np.array_equal(np.asarray(shown.convert("RGBA" if alpha else "RGB")), frame)
    assert len(data) < 3 * 60 * 80 * 4 / 8 * 1.2 + 300


def test_metadata_stays_beside_a_palette() -> None:
    image = vips(drawing()).copy()
    statement = b"<r:Description xmlns:d='http://purl.org/dc/elements/1.1/' d:title='Drawing'/>"
    packet = b"<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>%s</r:RDF>" % statement
    image.set_type(pyvips.GValue.blob_type, "xmp-data", packet)
    image = image.icc_transform("srgb", embedded=False, input_profile="srgb")
    data = write(image, "png", metadata="keep")
    picture = probe(ByteSource(data))
    facts = picture.info
    assert (facts.colorspace, facts.profile) == ("palette", True)
    assert load(picture).get_typeof("xmp-data")


@pytest.mark.parametrize("colors", [2, 3, 4, 15, 16, 50, 200, 256])
@pytest.mark.parametrize(
    "pixels",
    [
        photos.cat()[::3, ::3],
        photos.cut_out("cat")[::3, ::3],
        photos.deep(photos.cat()[::3, ::3]),
        photos.camera()[::3, ::3],
    ],
)
def test_no_more_colors_than_asked_for(colors: int, pixels: photos.Pixels) -> None:
    data = write(vips(pixels), "png", colors=colors)
    decoded = decode("png", data)[0]
    assert colors / 2 < photos.number_of_colors(decoded) <= colors
    assert probe(ByteSource(data)).info.colorspace == "palette"
    assert distance(decoded, pixels) < (0.12 if colors >= 50 else 1)


@pytest.mark.parametrize("colors", [2, 15, 200, 256])
def test_gif_has_no_more_colors_than_asked_for(colors: int) -> None:
    shown = decode("gif", write(vips(photos.cat()), "gif", colors=colors))[0]
    found = photos.number_of_colors(shown[..., :3])
    assert colors - 2 <= found <= colors


@pytest.mark.parametrize("format", ["png", "apng", "tiff", "jp2"])
def test_sixteen_bits_stay_sixteen(format: str) -> None:
    data = write(vips(deep()), format, lossless=True)
    source = ByteSource(data)
    assert np.array_equal(load(probe(source)).numpy(), deep())


@pytest.mark.parametrize("format", ["heic", "avif"])
def test_sixteen_bits_become_ten(format: str) -> None:
    """A ramp too fine for 8 bits keeps more steps than those hold."""
    ramp = np.repeat(np.linspace(20_000, 40_000, 512).astype(np.uint16)[None], 64, axis=0)
    source = ByteSource(write(vips(np.dstack([ramp] * 3)), format, quality=95))
    picture = probe(source)
    info = picture.info
    assert info.depth == 10
    image = load(picture).numpy()
    assert len(np.unique(image[32, :, 1])) > 150
    assert np.abs(image.astype(int) - ramp[:, :, None]).max() < 400


@given(st.lists(st.integers(0, 65_535), min_size=1, max_size=60), st.sampled_from([8, 10, 12]))
def test_depth_is_rounded_not_cut(values: list[int], bits: int) -> None:
    samples = np.array([values], np.uint16)
    image = to_depth(vips(samples), bits)
    levels = np.rint(samples * ((2**bits - 1) / 65535)).astype(np.uint16)
    assert np.array_equal(to_array(image)[:, :, 0], levels << (16 - bits) if bits > 8 else levels)
    assert image.interpretation == ("grey16" if bits > 8 else "b-w")


def test_computed_samples_are_rounded_not_cut() -> None:
    image = to_depth(vips(np.array([[-0.4, 0.4, 0.6, 254.6, 300]], np.float32)), 8)
    assert to_array(image)[:, :, 0].tolist() == [[0, 0, 1, 255, 255]]


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
    decoded = decode("heic", write(vips(picture), "heic", effort=1))[0]
    assert decoded.shape == picture.shape
    assert distance(decoded, picture) < 0.02
    error = np.abs(decoded.astype(int) - picture).mean(axis=(0, 2))
    assert error[[510, 511, 512, 513, 1023, 1024]].max() < 3 * error.mean() + 1


@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_bytes_go_to_a_target(format: str) -> None:
    target = io.BytesIO()
    result = save(vips(photo()), SaveSettings(format=format), target)
    assert result.data is None
    assert result.info.bytes == len(target.getvalue())
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


def test_pixels_that_cannot_be_computed_are_no_failure_of_the_target() -> None:
    cut = vips(photo()).jpegsave_buffer()[:-500]
    image = pyvips.Image.new_from_buffer(cut, "", access="sequential", fail_on="error")
    with pytest.raises(pyvips.Error):
        Sink(io.BytesIO()).save(image, "png")


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


@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_the_longest_side_is_written_and_longer_ones_are_refused(format: str) -> None:
    longest = FORMATS[format].max_side
    thin = 32 if format == "heic" else 1  # which x265 needs beside long ones

    def written(length: int) -> bytes:
        return write(pyvips.Image.black(length, thin).copy(interpretation="b-w"), format)

    assert probe(ByteSource(written(longest))).info.width == longest
    with pytest.raises(OutputTooLarge, match=f"at most {longest:,} pixels on a side"):
        written(longest + 1)


def test_input_formats_are_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="psd"):
        write(vips(photo()), "psd")


@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_damage_met_while_writing_is_the_fault_of_the_source(format: str) -> None:
    picture = probe(ByteSource(encoded("png").data))
    picture.header_reader = HeaderReader(ByteSource(encoded("png").data[:-600]), picture.title)
    image = load(picture)
    with pytest.raises(CorruptImage, match="damaged"), translate_errors("png"):
        write(image, format)


@pytest.mark.parametrize("format", ["jpg", "png", "webp", "tiff", "avif"])
def test_streaming_source_to_target(format: str) -> None:
    source = ByteSource(encoded("png").data)
    image = load(probe(source), LoadSettings(sequential=True))
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


@pytest.mark.parametrize("size", [(513, 512), (1030, 515), (3, 600)])
@pytest.mark.parametrize(
    "pixels", [gray(), photo(), transparent(), deep()], ids=["L", "RGB", "RGBA", "RGB 16"]
)
def test_jpeg_2000_is_written_by_tiles_and_read_by_others(pixels: Any, size: tuple[int, int]) -> None:
    """Narrow tiles at the edges are halved less often than others, which their headers must say."""
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    across, down = (-(-side // have) for side, have in zip(size, pixels.shape[1::-1], strict=True))
    large = np.tile(pixels, (down, across, 1))[: size[1], : size[0]]
    exact = decode("jp2", write(vips(large), "jp2", lossless=True))[0]
    assert np.array_equal(exact.reshape(large.shape), large)
    white = np.iinfo(large.dtype).max
    lossy = decode("jp2", write(vips(large), "jp2", quality=80))[0].reshape(large.shape)
    error = np.mean(((lossy.astype(float) - large) / white) ** 2)
    assert -10 * np.log10(error) > 36
