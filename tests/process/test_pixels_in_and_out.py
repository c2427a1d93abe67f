"""Pixels of other libraries as sources, and results as their pixels."""

from __future__ import annotations

import base64
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from tests.process.pictures import pixels_of
from tests.support.photos import as_vips, coffee, cut_out, deep, moving_frames

PNG = {"output": {"format": "png"}}


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "1", "P", "I;16", "I;16B", "YCbCr", "HSV"])
def test_pillow_images_keep_their_pixels(mode: str) -> None:
    photo = Image.fromarray(cut_out("coffee"))
    wide = {"I;16": "<u2", "I;16B": ">u2"}
    source = (
        Image.fromarray(deep(coffee()[..., 0]).astype(wide[mode])) if mode in wide else photo.convert(mode)
    )
    assert source.mode == mode
    expected = source.convert({"1": "L", "P": "RGB", "YCbCr": "RGB", "HSV": "RGB"}.get(mode, mode))
    assert np.array_equal(pixels_of(imgsvc.process(source, PNG).data).squeeze(), np.asarray(expected))


def test_premultiplied_gray_is_gray_again() -> None:
    source = Image.fromarray(cut_out("coffee")).convert("LA").convert("La")
    assert np.array_equal(pixels_of(imgsvc.process(source, PNG).data), np.asarray(source.convert("LA")))


def test_transparent_palettes_keep_their_transparency() -> None:
    source = Image.fromarray(coffee()).convert("P")
    source.info["transparency"] = 7
    assert np.array_equal(pixels_of(imgsvc.process(source, PNG).data), np.asarray(source.convert("RGBA")))


def test_pillow_images_keep_profile_orientation_and_frames() -> None:
    photo = Image.fromarray(coffee())
    photo.getexif()[0x0112] = 6
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    photo.info["icc_profile"] = profile
    info = imgsvc.inspect(photo)
    assert (info.orientation, info.profile, info.upright_size) == (6, True, (400, 600))
    assert imgsvc.process(photo, PNG).output.width == 400
    frames = [Image.fromarray(frame) for frame in moving_frames(3, 40, 30)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=[50, 70, 90], loop=0)
    animation = Image.open(file)
    animation.seek(1)
    found = imgsvc.inspect(animation)
    assert (found.frames, found.width, found.height, found.delays, found.plays) == (
        3,
        40,
        30,
        (50, 70, 90),
        0,
    )
    assert animation.tell() == 1
    assert imgsvc.process(animation, {"output": {"format": "webp"}}).output.frames == 3


def test_cmyk_of_pillow_is_cmyk() -> None:
    source = Image.fromarray(coffee()).convert("CMYK")
    assert imgsvc.inspect(source).colorspace == "cmyk"
    file = io.BytesIO()
    source.save(file, "TIFF")
    assert imgsvc.process(source, PNG).data == imgsvc.process(file.getvalue(), PNG).data


@pytest.mark.parametrize(("space", "depth"), [("b-w", 8), ("grey16", 16)])
def test_gray_pixels_are_gray(space: str, depth: int) -> None:
    found = imgsvc.inspect(as_vips(coffee()).colourspace(space))
    assert (found.colorspace, found.depth) == ("gray", depth)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_are_from_black_at_0_to_white_at_1(kind: Any) -> None:
    values = np.array([[0, 0.25, 0.5, 1]], kind)
    found = pixels_of(imgsvc.process(values, PNG).data).squeeze()
    assert (found.dtype, found.tolist()) == (np.uint16, [0, 16384, 32768, 65535])


def test_rounding_errors_of_floats_are_no_other_range() -> None:
    values = np.array([[-1e-7, 1 + 1e-7]], np.float32)
    found = pixels_of(imgsvc.process(values, PNG).data).squeeze()
    assert (found.dtype, found.tolist()) == (np.uint16, [0, 65535])


def test_bools_are_black_and_white() -> None:
    found = pixels_of(imgsvc.process(np.array([[True, False]]), PNG).data).squeeze()
    assert (found.dtype, found.tolist()) == (np.uint8, [255, 0])


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.full((2, 2), 255.0), "floats must be within 0 to 1 range, got 255 to 255; divide or clip it"),
        (np.full((2, 2), np.nan), "floats must be within 0 to 1 range, got NaN; replace it first"),
        (np.full((2, 2), -0.1), "floats must be within 0 to 1 range"),
        (np.zeros((2, 2), np.int32), "of uint8, uint16, bool or float, got shape .* of int32"),
        (np.zeros((2, 2, 5), np.uint8), "with 1 to 4 channels"),
        (np.zeros((2, 2, 0), np.uint8), "with 1 to 4 channels"),
        (np.zeros(4), "must be height x width"),
        (np.zeros((3, 22, 22)), r"got shape \(3, 22, 22\) of float64: channels must come last, as after"),
        (np.zeros((1, 3, 22, 22)), r"got shape \(1, 3, 22, 22\) of float64: pass the pictures one by one"),
        (np.zeros((2, 2), object), "of object"),
        (np.ma.masked_less(np.eye(2), 1), "must have all of its pixels, got a masked array; fill it first"),
    ],
)
def test_other_arrays_are_refused(array: Any, words: str) -> None:
    with pytest.raises(imgsvc.InvalidPixels, match=f"Source array .*{words}"):
        imgsvc.process(array)


def test_operations_are_no_options() -> None:
    words = r"Options are accept, digest, .*, got 'width'; operations go into the request, as in process\("
    with pytest.raises(TypeError, match=words):
        imgsvc.process(coffee(), width=300)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=words):
        imgsvc.process_variants(coffee(), {"a": {}}, width=300)  # type: ignore[call-overload]


def test_a_path_in_place_of_a_request_is_named_as_the_target() -> None:
    for path in ("b.webp", Path("b.webp")):
        with pytest.raises(imgsvc.SpecError, match=r"pass a path of the result as 'target', got 'b\.webp'"):
            imgsvc.process(coffee(), path)  # type: ignore[call-overload]


@pytest.mark.parametrize("source", [None, 5, object(), ["a"], {"a": 1}])
def test_what_is_no_source_is_a_type_error(source: Any) -> None:
    for call in (imgsvc.process, imgsvc.inspect):
        with pytest.raises(TypeError, match=f"Source must be .*, got {type(source).__name__}"):
            call(source)


def test_results_are_saved(tmp_path: Path) -> None:
    result = imgsvc.process(coffee(), {"output": {"format": "webp"}})
    buffer = io.BytesIO()
    for target in (tmp_path / "a.WEBP", str(tmp_path / "b"), buffer, f"file://{tmp_path}/c.webp"):
        result.save(target)
    saved = [(tmp_path / name).read_bytes() for name in ("a.WEBP", "b", "c.webp")]
    assert {*saved, buffer.getvalue()} == {result.data}
    with pytest.raises(imgsvc.TargetError, match=r"suffix must be one of \.webp .*, got '\.png'"):
        result.save(tmp_path / "d.png")
    assert not (tmp_path / "d.png").exists()
    with pytest.raises(imgsvc.TargetError):
        result.save(tmp_path / "nowhere" / "a.webp")
    with pytest.raises(imgsvc.TargetError, match=r"Target must be a path, .*, got NoneType"):
        result.save(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pixels", [coffee(), coffee()[..., 0], cut_out("coffee"), deep(coffee()), deep(coffee())[..., 0]]
)
def test_results_are_arrays_again(pixels: Any) -> None:
    result = imgsvc.process(pixels, PNG)
    assert np.array_equal(result.to_numpy().squeeze(), pixels)
    # Of pictures with 16 bits, Pillow has only gray ones.
    expected = pixels if pixels.dtype == np.uint8 or pixels.ndim == 2 else (pixels >> 8).astype(np.uint8)
    assert np.array_equal(np.asarray(result.to_pil()), expected)


def test_animated_results_have_all_their_frames() -> None:
    frames = [Image.fromarray(frame) for frame in moving_frames(3, 40, 30)]
    file = io.BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:], duration=50)
    result = imgsvc.process(file.getvalue())
    assert result.to_numpy().shape[:3] == (3, 30, 40)
    assert np.array_equal(result.to_numpy()[2, ..., :3], np.asarray(frames[2]))
    assert result.to_pil().n_frames == 3  # type: ignore[attr-defined]  # of some formats' images only


@pytest.mark.parametrize(
    ("format", "media_type"), [("jpg", "image/jpeg"), ("png", "image/png"), ("tiff", "image/png")]
)
def test_notebooks_show_results(format: str, media_type: str) -> None:
    result = imgsvc.process(coffee(), {"output": {"format": format}})
    bundle = json.loads(json.dumps(result._repr_mimebundle_(include=None, exclude=None)))
    shown = Image.open(io.BytesIO(base64.b64decode(bundle[media_type])))
    assert (shown.size, Image.MIME[shown.format or ""]) == ((600, 400), media_type)
    assert bundle["text/plain"] == repr(result)


def test_notebooks_show_results_of_other_processes() -> None:
    """Their pixels stayed there, and browsers do not show all formats."""
    made = imgsvc.process(coffee(), {"output": {"format": "tiff"}})
    bundle = pickle.loads(pickle.dumps(made))._repr_mimebundle_()
    with Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))) as shown:
        assert np.array_equal(np.asarray(shown), made.to_numpy())


def test_results_that_went_to_a_target_say_so(tmp_path: Path) -> None:
    result: Any = imgsvc.process(coffee(), None, tmp_path / "a.png")
    for use in (lambda: result.save(tmp_path / "b.png"), result.to_numpy, result.to_pil):
        with pytest.raises(TypeError, match="The result was written to a target"):
            use()
    assert list(result._repr_mimebundle_()) == ["text/plain"]


def test_numbers_of_numpy_are_numbers() -> None:
    limits = imgsvc.Limits(frames=np.int64(1), seconds=np.float32(9))  # type: ignore[arg-type]
    result = imgsvc.process(
        coffee(), {"resize": {"width": np.uint16(30)}}, limits=limits, threads=np.int64(1)
    )  # type: ignore[arg-type]
    assert result.output.width == 30
    with pytest.raises(imgsvc.SpecError, match="'frames' parameter must be a positive integer or null, got"):
        imgsvc.Limits(frames=np.float64(1))  # type: ignore[arg-type]


def moving(format: str, **options: Any) -> bytes:
    frames = [Image.new("RGB", (40, 30), color) for color in ("red", "green", "blue")]
    file = io.BytesIO()
    frames[0].save(file, format, save_all=True, append_images=frames[1:], duration=50, **options)
    return file.getvalue()


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP"])
@pytest.mark.parametrize("loop", [None, 0, 1, 3])
def test_animations_of_pillow_play_as_often_as_their_files(format: str, loop: int | None) -> None:
    data = moving(format, **({} if loop is None else {"loop": loop}))
    expected = imgsvc.inspect(data).plays
    assert (
        imgsvc.process(Image.open(io.BytesIO(data)), {"output": {"format": "apng"}}).output.plays == expected
    )


@pytest.mark.parametrize("format", ["jpg", "png", "tiff"])
def test_a_still_shows_the_first_frame_of_an_animation_in_memory(format: str) -> None:
    request = {"output": {"format": format}}
    for source in (Image.open(io.BytesIO(moving("GIF"))), strip()):
        result = imgsvc.process(source, request)
        assert (result.output.width, result.output.height, result.output.frames) == (40, 30, 1)
        assert result.to_numpy()[15, 20, :3] == pytest.approx((255, 0, 0), abs=3)


def test_an_animation_in_memory_stays_one() -> None:
    result = imgsvc.process(strip())
    assert (result.output.format, result.output.frames) == ("apng", 3)
    assert imgsvc.explain({}, imgsvc.inspect(strip())).save[0].format == "apng"


def strip() -> pyvips.Image:
    colors = np.array([(255, 0, 0), (0, 128, 0), (0, 0, 255)], np.uint8)
    image = pyvips.Image.new_from_array(np.repeat(colors, 30, axis=0)[:, None].repeat(40, axis=1)).copy()
    image.set_type(pyvips.GValue.gint_type, "page-height", 30)
    return image


def test_of_pages_the_selected_one_is_taken() -> None:
    pages = [Image.new("RGB", size, "red") for size in ((40, 30), (20, 10))]
    file = io.BytesIO()
    pages[0].save(file, "TIFF", save_all=True, append_images=pages[1:])
    picture = Image.open(file)
    assert imgsvc.inspect(picture).frames == 1
    picture.seek(1)
    result = imgsvc.process(picture)
    assert (result.output.width, result.output.height, result.output.format) == (20, 10, "png")
    assert picture.tell() == 1


def test_files_that_are_opened_for_something_else_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    expected = "it was not opened for that"
    with path.open("wb") as file, pytest.raises(imgsvc.SourceUnreachable, match=f"be read: {expected}"):
        imgsvc.process(file)
    with path.open("rb") as file, pytest.raises(imgsvc.TargetError, match=f"be written: {expected}"):
        imgsvc.process(strip(), {}, file)


@pytest.mark.parametrize("shape", [(1, 1), (1, 1, 2), (1, 9), (9, 1), (1, 1, 4)])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_one_pixel_has_two_sides(shape: tuple[int, ...], kind: Any) -> None:
    source = np.full(shape, 200, kind)
    result = imgsvc.process(source, PNG)
    assert np.array_equal(result.to_numpy(), source)
    assert result.to_pil().size == shape[1::-1]
    enhanced = imgsvc.process(source, {"auto": {"enhance": True}, **PNG})
    assert enhanced.to_numpy().shape == shape


def test_a_still_with_the_page_height_of_an_animation_is_a_still() -> None:
    image = pyvips.Image.black(20, 10).copy()
    image.set_type(pyvips.GValue.gint_type, "page-height", 10)
    result = imgsvc.process(image, {"rotate": {"angle": 45}, "output": {"format": "jpg"}})
    assert result.output.frames == 1


def _opened(picture: Image.Image, format: str, **options: Any) -> Any:
    file = io.BytesIO()
    picture.save(file, format, **options)
    return Image.open(file)


def test_pillow_images_without_pixels_are_refused() -> None:
    with pytest.raises(imgsvc.InvalidPixels, match="Source Pillow image must have pixels, got 0 x 5"):
        imgsvc.process(Image.new("RGB", (0, 5)), PNG)


def test_limits_hold_before_pillow_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [Image.new("RGB", (30, 20), (20 * index, 0, 0)) for index in range(12)]
    moving = _opened(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=50)
    assert moving.n_frames == 12
    with pytest.raises(imgsvc.ImageTooLarge, match="12 frames"):
        imgsvc.process(moving, PNG, limits=imgsvc.Limits(frames=11))
    with monkeypatch.context() as patch:
        patch.setattr(moving, "seek", lambda frame: pytest.fail("it is being decoded"))
        with pytest.raises(imgsvc.MemoryLimitExceeded):
            imgsvc.process(moving, PNG, limits=imgsvc.Limits(memory_bytes=50_000))
    still = _opened(Image.new("RGB", (300, 200)), "PNG")
    with pytest.raises(imgsvc.ImageTooLarge, match="60,000 pixels"):
        imgsvc.process(still, PNG, limits=imgsvc.Limits(source_pixels=59_999))
    assert still.fp is not None  # nothing was decoded
    with pytest.raises(imgsvc.ImageTooLarge, match="60,000 pixels"):
        imgsvc.process(np.zeros((200, 300)), PNG, limits=imgsvc.Limits(source_pixels=59_999))


def test_deep_gray_of_pillow_keeps_its_values_beside_transparency() -> None:
    values = np.array([[0, 25_700, 51_400, 65_535]], np.uint16)
    source = _opened(Image.fromarray(values), "PNG", transparency=25_700)
    found = pixels_of(imgsvc.process(source, PNG).data)
    assert np.array_equal(found[..., 0], values // 257)
    assert found[..., -1].tolist() == [[255, 0, 255, 255]]
    assert imgsvc.process(source).to_numpy()[..., -1].tolist() == [[65_535, 0, 65_535, 65_535]]


def test_the_default_image_of_an_animated_png_is_no_frame() -> None:
    pictures = [Image.new("RGB", (8, 6), color) for color in ("red", "green", "blue")]
    source = _opened(
        pictures[0], "PNG", save_all=True, append_images=pictures[1:], default_image=True, duration=[50, 70]
    )
    info = imgsvc.inspect(source)
    assert (info.frames, info.delays) == (2, (50, 70))
    result = imgsvc.process(source, {"output": {"format": "apng"}})
    assert imgsvc.process(result.data, PNG).to_numpy()[0, 0].tolist()[:3] == [0, 128, 0]


@pytest.mark.parametrize("change", ["cut", "closed"])
def test_pillow_images_that_cannot_be_read_are_told(change: str) -> None:
    file = io.BytesIO()
    Image.fromarray(coffee()).save(file, "JPEG")
    source = Image.open(io.BytesIO(file.getvalue()[: len(file.getvalue()) // 2]))
    if change == "closed":
        source.close()
    with pytest.raises(imgsvc.SourceError, match="Source Pillow image cannot be read"):
        imgsvc.process(source, PNG)
