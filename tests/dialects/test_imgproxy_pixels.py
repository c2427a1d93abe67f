"""Pictures that URLs of imgproxy ask for, against Pillow."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_urls.dialects import ForeignRequest
from imgsvc_urls.dialects.imgproxy import Imgproxy
from imgsvc_urls.dialects.translating import translate
from tests.dialects.pictures import facts, kept_at, planned_size
from tests.support import photos

Transpose = Image.Transpose
PLAIN = "plain/https://pics.example/a.png"

# What turns a picture of an EXIF orientation upright, and what flips and rotations do, in Pillow's words.
UPRIGHT = {
    1: (), 2: (Transpose.FLIP_LEFT_RIGHT,), 3: (Transpose.ROTATE_180,), 4: (Transpose.FLIP_TOP_BOTTOM,),
    5: (Transpose.TRANSPOSE,), 6: (Transpose.ROTATE_270,), 7: (Transpose.TRANSVERSE,),
    8: (Transpose.ROTATE_90,),
}  # fmt: skip
ROTATED = {0: (), 90: (Transpose.ROTATE_270,), 180: (Transpose.ROTATE_180,), 270: (Transpose.ROTATE_90,)}
FLIPPED = {
    "0:0": (), "1:0": (Transpose.FLIP_LEFT_RIGHT,), "0:1": (Transpose.FLIP_TOP_BOTTOM,),
    "1:1": (Transpose.ROTATE_180,),
}  # fmt: skip


def png(image: Image.Image, orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    image.save(file, "PNG", exif=exif)
    return file.getvalue()


MARK = png(Image.new("RGB", (30, 20), (0, 255, 0)))


def file(options: str, source: bytes) -> bytes:
    """The file that a URL asks for."""
    dialect = Imgproxy(allow_security_options=True, watermark="mark")
    spec = translate(dialect.parse(ForeignRequest(f"/unsafe/{options}/{PLAIN}")), source)
    assert spec is not None
    data = imgsvc.process(source, spec, watermarks={"mark": MARK}).data
    assert data is not None
    return data


def delivered(options: str, source: bytes) -> Image.Image:
    """The picture that a URL asks for."""
    return Image.open(io.BytesIO(file(options, source)))


def turned(image: Image.Image, *ways: Transpose) -> Image.Image:
    for way in ways:
        image = image.transpose(way)
    return image


GRID = Image.fromarray(
    np.dstack(
        [*np.mgrid[0:240:4, 0:240:3].astype(np.uint8), np.full((60, 80), 9, np.uint8)]
    )  # each pixel has a color of its own
)
PLACES = {
    "nowe": (0, 0), "no": (0.5, 0), "ea": (1, 0.5), "soea": (1, 1), "ce": (0.5, 0.5),
}  # fmt: skip


@pytest.mark.parametrize(
    ("orientation", "auto_rotate"), [*((number, True) for number in range(1, 9)), (1, False), (6, False)]
)
def test_crops_and_gravities_are_those_of_the_turned_picture(orientation: int, auto_rotate: bool) -> None:
    source = png(GRID, orientation)
    upright = turned(GRID, *UPRIGHT[orientation]) if auto_rotate else GRID
    turns = itertools.product(ROTATED.items(), FLIPPED.items())
    for number, ((angle, rotations), (flip, flips)) in enumerate(turns, orientation):
        expected = turned(upright, *rotations, *flips)
        for place in {"soea", (*PLACES,)[number % len(PLACES)]}:  # each turn is that of several orientations
            across, down = PLACES[place]
            left = round((expected.width - 20) * across)
            top = round((expected.height - 32) * down)
            options = f"c:20:32:{place}/rot:{angle}/fl:{flip}/ar:{int(auto_rotate)}"
            part = np.asarray(expected.crop((left, top, left + 20, top + 32)))
            assert (np.asarray(delivered(options, source).convert("RGB")) == part).all(), options


@pytest.mark.parametrize("flip", ["1:0", "0:1"])
@pytest.mark.parametrize("orientation", [1, 4, 6, 7])
def test_offsets_of_crops_are_inward(orientation: int, flip: str) -> None:
    expected = turned(GRID, *UPRIGHT[orientation], Transpose.ROTATE_270, *FLIPPED[flip])
    width, height = expected.size
    cases = {
        "soea:3:5": (width - 23, height - 37),
        "no:3:5": ((width - 20) // 2 + 3, 5),
        "we:3:5": (3, (height - 32) // 2 + 5),
        "ce:-3:5": ((width - 20) // 2 - 3, (height - 32) // 2 + 5),
        "fp:0.25:0.5": (round(width * 0.25) - 10, round(height * 0.5) - 16),
    }
    for gravity, (left, top) in cases.items():
        part = expected.crop((left, top, left + 20, top + 32))
        found = delivered(f"c:20:32:{gravity}/rot:90/fl:{flip}", png(GRID, orientation))
        assert (np.asarray(found.convert("RGB")) == np.asarray(part)).all(), gravity


def framed(ground: tuple[int, ...], left: int, top: int, right: int, bottom: int) -> Image.Image:
    """A photograph with a border."""
    inner = (
        Image.fromarray(photos.photo("cat")).resize((60, 40)).convert("RGB" if len(ground) == 3 else "RGBA")
    )
    size = (60 + left + right, 40 + top + bottom)
    frame = Image.new("RGB" if len(ground) == 3 else "RGBA", size, ground)
    frame.paste(inner, (left, top))
    return frame


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ("t:10", (60, 40)),
        ("t:10/w:30", (30, 20)),
        ("t:10/w:30/dpr:2/pd:3", (72, 52)),
        ("t:10/rs:fill:20:40", (20, 40)),
        ("t:10/rs:fill-down:100:400", (10, 40)),
        ("t:10/rs:force:30:40", (30, 40)),
        ("t:10/c:0.5:0.5:no/w:15", (15, 10)),
        ("t:10/z:0.5", (30, 20)),
        ("t:10/rot:90/h:30", (20, 30)),
        ("t:10/rs:fit:90:90/ex:1", (90, 90)),
        ("t:10/mw:90", (90, 60)),
        ("t:10/g:sm/rs:fill:20:20", (20, 20)),
        ("t:10/mrd:30", (30, 20)),
        ("t:10::1", (64, 40)),
        ("t:10:::1", (60, 47)),
        ("t:10::1:1", (64, 47)),
        ("t:10:0000ff", (70, 49)),
    ],
)
def test_trim_goes_with_all_options(options: str, size: tuple[int, int]) -> None:
    source = png(
        framed((250, 250, 250), 3, 8, 7, 1) if "ff" not in options else framed((250,) * 3, 3, 8, 7, 1)
    )
    assert delivered(options, source).size == size


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_what_a_trim_leaves_is_where_it_was(orientation: int) -> None:
    whole = framed((250, 250, 250), 4, 10, 8, 2)
    inner = whole.crop((4, 10, 64, 50))
    found = delivered("t:10/bg:fff", png(whole, orientation))
    assert (np.asarray(found.convert("RGB")) == np.asarray(turned(inner, *UPRIGHT[orientation]))).all()
    stored = delivered("t:10/ar:0/c:30:20:nowe", png(whole, orientation))
    assert (np.asarray(stored.convert("RGB")) == np.asarray(inner.crop((0, 0, 30, 20)))).all()


def test_equal_sides_of_a_trim_are_those_of_the_file() -> None:
    whole = framed((250, 250, 250), 4, 10, 8, 2)
    assert delivered("t:10::1", png(whole, 6)).size == (40, 64)


@pytest.mark.parametrize("color", ["", ":ff00ff"])
def test_transparent_borders_are_trimmed_on_magenta(color: str) -> None:
    found = delivered(f"t:10{color}", png(framed((1, 2, 3, 0), 3, 8, 7, 1)))
    assert found.size == (60, 40)
    assert found.mode == "RGB" or np.asarray(found)[:, :, 3].min() == 255


def test_a_picture_of_one_color_is_not_trimmed_away() -> None:
    assert delivered("t:10", png(Image.new("RGB", (30, 20), (9, 9, 9)))).size == (30, 20)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (2, 17), (17, 2)])
def test_pictures_of_few_pixels_are_trimmed(size: tuple[int, int]) -> None:
    assert delivered("t:10", png(Image.new("RGB", size, (9, 9, 9)))).size == size
    dotted = Image.new("RGB", size, (9, 9, 9))
    dotted.putpixel((size[0] - 1, size[1] - 1), (250, 0, 0))
    assert delivered("t:10", png(dotted)).size == ((1, 1) if size != (1, 1) else size)


def test_hair_lines_in_a_border_are_overlooked() -> None:
    whole = framed((250, 250, 250), 12, 12, 12, 12)
    whole.putpixel((2, 2), (0, 0, 0))
    assert delivered("t:10", png(whole)).size == (60, 40)


def animation(frames: int) -> bytes:
    pictures = [Image.new("RGB", (40, 30), (index * 60, 90, 120)) for index in range(frames)]
    file = io.BytesIO()
    durations = [100 * (index + 1) for index in range(frames)]
    pictures[0].save(
        file, "WEBP", save_all=True, append_images=pictures[1:], duration=durations, lossless=True
    )
    return file.getvalue()


@pytest.mark.parametrize(
    ("options", "format", "frames"),
    [
        ("w:20", "GIF", 4),
        ("w:20/maf:3", "GIF", 3),
        ("maf:3/f:webp", "WEBP", 3),
        ("w:20/maf:9", "GIF", 4),
        ("w:20/maf:1", "JPEG", 1),
        ("w:20/maf:1/f:webp", "WEBP", 1),
        ("w:20/f:png", "PNG", 1),
    ],
)
def test_frames_that_are_kept(options: str, format: str, frames: int) -> None:
    found = delivered(options, animation(4))
    assert (found.format, getattr(found, "n_frames", 1)) == (format, frames)
    durations = []
    for index in range(frames if frames > 1 else 0):
        found.seek(index)
        found.load()
        durations.append(found.info["duration"])
    assert durations == [100 * (index + 1) for index in range(len(durations))]


def test_blur_hides_what_imgproxy_hides() -> None:
    """A wide blur of a small picture leaves little contrast, however small the picture is."""
    lines = np.zeros((67, 100, 3), np.uint8)
    lines[:, 10::20] = lines[:, 11::20] = 255
    before = png(Image.fromarray(lines))
    deviations = [np.asarray(delivered(f"bl:{sigma}", before).convert("L"), float).std() for sigma in (2, 10)]
    assert deviations[0] > 20
    assert deviations[1] < 5


def test_pixels_become_as_large_as_asked() -> None:
    made = np.asarray(delivered("pix:32", png(Image.fromarray(photos.photo("cat")))).convert("RGB"))
    assert photos.number_of_colors(made) <= 10 * 15


@pytest.mark.parametrize(
    ("options", "format", "width", "height", "size"),
    [
        ("rs:fill-down:230:0/dpr:3", "png", 1000, 250, (690, 172)),  # 172.5, by a factor that is rounded
        ("w:33", "png", 100, 50, (33, 17)),  # 16.5
        ("w:129/h:611", "jpg", 300, 451, (129, 194)),
        ("w:801", "jpg", 2725, 2225, (801, 654)),
        ("h:322/dpr:0.5", "webp", 640, 427, (241, 161)),
        ("c:0.5:0.25/w:333", "jpg", 2725, 2225, (333, 136)),
        ("w:300/el:1", "png", 200, 99, (300, 149)),  # 148.5
    ],
)
def test_sizes_are_those_that_libvips_makes(
    options: str, format: str, width: int, height: int, size: tuple[int, int]
) -> None:
    url = Imgproxy().parse(ForeignRequest(f"/unsafe/{options}/{PLAIN}"))
    assert planned_size(url, facts(format, width, height)) == size


def test_halves_of_pixels_fall_as_in_imgproxy() -> None:
    url = Imgproxy().parse(ForeignRequest(f"/unsafe/rs:fill:368:82/g:ea/mh:527/{PLAIN}"))
    assert kept_at(url, facts("jpg", 600, 400)) == (791 - 368, 223)  # 790.5


def test_offsets_of_an_extended_picture_grow_with_the_density() -> None:
    picture = delivered("rs:fit:40:40/ex:1:nowe:5:7/dpr:2", png(GRID.convert("RGB")))
    alpha = np.asarray(picture.convert("RGBA"))[:, :, 3]
    assert picture.size == (80, 80)
    assert np.argwhere(alpha).min(axis=0).tolist() == [14, 0]


@pytest.mark.parametrize("orientation", [1, 6, 7])
def test_smart_crops_look_at_the_stored_picture(orientation: int) -> None:
    stored = photos.photo("coffee")[:200, :300]
    crop = pyvips.Image.new_from_array(stored).smartcrop(100, 60).numpy()
    for angle, rotations in ROTATED.items():
        theirs = turned(Image.fromarray(crop), *UPRIGHT[orientation], *rotations, *FLIPPED["1:0"])
        width, height = theirs.size
        options = f"c:{width}:{height}:sm/rot:{angle}/fl:1"
        ours = delivered(options, png(Image.fromarray(stored), orientation))
        assert (np.asarray(ours.convert("RGB")) == np.asarray(theirs)).all(), options


def test_enlarging_is_that_of_libvips() -> None:
    source = png(Image.fromarray(photos.photo("cat")))
    theirs = pyvips.Image.new_from_buffer(source, "").resize(1.5).numpy()
    ours = np.asarray(delivered("z:1.5/el:1", source).convert("RGB"))
    assert ours.shape == theirs.shape
    assert (ours == theirs).all()


@pytest.mark.parametrize("orientation", [1, 6])
def test_jpegs_are_decoded_as_small_as_they_can_be(orientation: int) -> None:
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(photos.photo("coffee")).save(file, "JPEG", quality=90, exif=exif)
    ours = np.asarray(delivered("w:200/h:200/f:png", file.getvalue()).convert("RGB"), float)
    smaller = pyvips.Image.new_from_buffer(file.getvalue(), "", shrink=2).resize(200 / 300)
    theirs = turned(Image.fromarray(smaller.numpy()), *UPRIGHT[orientation])
    assert ours.shape[1::-1] == theirs.size
    assert np.abs(ours - np.asarray(theirs, float)).max() <= 1


def test_inks_become_the_colors_that_libvips_gives_them() -> None:
    file = io.BytesIO()
    Image.fromarray(photos.photo("coffee")).convert("CMYK").save(file, "JPEG", quality=95)
    theirs = pyvips.Image.new_from_buffer(file.getvalue(), "").colourspace("srgb").numpy().astype(float)
    ours = np.asarray(delivered("f:png", file.getvalue()).convert("RGB"), float)
    assert np.abs(ours - theirs).mean() < 0.1
    usual = imgsvc.process(file.getvalue(), {"output": {"format": "png"}}).to_pil().convert("RGB")
    assert np.abs(np.asarray(usual, float) - theirs).mean() > 2


def test_factors_turn_with_the_picture() -> None:
    stored = photos.photo("cat")
    theirs = pyvips.Image.new_from_array(stored).resize(500 / stored.shape[1], vscale=400 / stored.shape[0])
    ours = delivered("rs:force:400:500:1", png(Image.fromarray(stored), 6))
    assert (
        np.asarray(ours.convert("RGB")) == np.asarray(turned(Image.fromarray(theirs.numpy()), *UPRIGHT[6]))
    ).all()


@pytest.mark.parametrize("format", ["png", "tiff", "avif"])
def test_more_than_8_bits_are_kept_only_if_told(format: str) -> None:
    pixels = pyvips.Image.new_from_array(photos.photo("cat")[:60, :90].astype(np.uint16) * 257)
    source = pixels.copy(interpretation="rgb16").pngsave_buffer()
    for options, depth in ((f"f:{format}", 8), (f"f:{format}/ph:1", {"avif": 10}.get(format, 16))):
        assert imgsvc.inspect(file(options, source)).depth == depth


def test_icons_are_made_smaller_after_filters_and_padding_and_before_watermarks() -> None:
    source = png(Image.fromarray(photos.photo("cat")).resize((500, 400)))
    icon = delivered("pix:50/pd:6:2/bg:00f/wm:1:soea/f:ico", source).convert("RGB")
    padded = Image.new("RGB", (504, 412), (0, 0, 255))
    padded.paste(delivered("pix:50", source).convert("RGB"), (2, 6))
    expected = padded.resize((256, 209), Image.Resampling.LANCZOS)
    expected.paste((0, 255, 0), (226, 189, 256, 209))
    assert icon.size == expected.size
    assert np.abs(np.asarray(icon, float) - np.asarray(expected, float)).mean() < 1


@pytest.mark.parametrize(("opacity", "drawn"), [("0.5", False), ("0.51", True)])
def test_watermarks_of_half_their_opacity_are_invisible_on_transparent_gifs(
    opacity: str, drawn: bool
) -> None:
    picture = delivered(f"wm:{opacity}:nowe/f:gif", png(Image.new("RGBA", (60, 40)))).convert("RGBA")
    assert np.asarray(picture)[:, :, 3].any() == drawn


def test_webps_have_the_colors_of_libvips() -> None:
    lines = np.full((90, 90, 3), (255, 255, 255), np.uint8)
    lines[::7] = (255, 0, 0)
    lines[:, ::5] = (0, 0, 255)
    source = png(Image.fromarray(lines))
    theirs = Image.open(io.BytesIO(pyvips.Image.new_from_buffer(source, "").webpsave_buffer(Q=79)))
    difference = np.asarray(delivered("f:webp", source).convert("RGB"), float) - np.asarray(theirs)
    assert np.abs(difference).max() <= 1


def test_gifs_have_the_palettes_of_libvips() -> None:
    source = png(Image.fromarray(photos.photo("cat")).resize((300, 200)))
    theirs = Image.open(io.BytesIO(pyvips.Image.new_from_buffer(source, "").gifsave_buffer()))
    ours = delivered("f:gif", source)
    assert (np.asarray(ours.convert("RGB")) == np.asarray(theirs.convert("RGB"))).all()
