"""Small pictures have a way of their own past libvips, and come out as from it, byte by byte."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg import reading, turbojpeg
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.png import small_reading as small_png
from imgsvc_core.formats.png.header import make_chunk
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.webp import reading as webp_reading
from imgsvc_core.pixels import resampling
from imgsvc_core.pixels.reduction import render_raster
from imgsvc_core.plan import compile_plan, compiler
from tests.support.photos import Pixels, coffee

_PHYS = struct.pack(">IIB", 4000, 3000, 1)


def stored(pixels: Pixels, *chunks: bytes) -> bytes:
    """A PNG with chunks before its data."""
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(file, "PNG")
    data = file.getvalue()
    return b"".join((data[:33], *chunks, data[33:]))


def photograph(width: int, height: int, bands: int) -> Pixels:
    pixels = coffee()[100 : 100 + height, 200 : 200 + width]
    alpha = np.add.outer(np.arange(height), np.arange(width))[..., None] * 5 % 256
    return np.concatenate([pixels[..., : (bands - 1) | 1], alpha], axis=2)[..., :bands].astype(np.uint8)


def at_once(data: bytes, request: dict[str, Any]) -> bytes | None:
    spec = imgsvc.parse({**request, "output": {"format": "png", **request.get("output", {})}})
    plan = compile_plan(spec, imgsvc.inspect(data))
    raster = load(probe(ByteSource(data)), plan.load)
    return save(render_raster(raster, plan), plan.save[0]).data if isinstance(raster, Raster) else None


def jpeg(pixels: Pixels, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=85, **options)
    return file.getvalue()


def webp_at_once(data: bytes, request: dict[str, Any]) -> bytes | None:
    return at_once(data, {**request, "output": {"format": "webp", **request.get("output", {})}})


def webp_by_libvips(data: bytes, request: dict[str, Any]) -> bytes:
    """The same of a request that has all metadata kept, of which there is none."""
    kept = {**request, "output": {"format": "webp", **request.get("output", {}), "metadata": "keep"}}
    assert webp_at_once(data, kept) is None
    with reduced_by_libvips():
        return imgsvc.process(data, kept).data


def by_libvips(data: bytes, request: dict[str, Any]) -> bytes:
    """The same of a decoded picture."""
    image = pyvips.Image.pngload_buffer(data, fail_on="error")
    with reduced_by_libvips():
        return imgsvc.process(image, {**request, "output": {"format": "png"}}).data


@contextlib.contextmanager
def reduced_by_libvips() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "fits_array", lambda *_: False)
        patch.setattr(resampling, "reduces_in_array", lambda *_: False)
        yield patch


@contextlib.contextmanager
def libvips_alone() -> Iterator[None]:
    """Let libvips decode JPEGs, too."""
    with reduced_by_libvips() as patch:
        patch.setattr(reading, "decoded", lambda *_: None)
        yield


@given(
    width=st.integers(1, 80),
    height=st.integers(1, 60),
    bands=st.integers(1, 4),
    noisy=st.booleans(),
    mode=st.sampled_from(["stretch", "fit", "fill", "auto"]),
    data=st.data(),
)
def test_they_are_the_same_as_from_libvips(
    width: int, height: int, bands: int, noisy: bool, mode: str, data: Any
) -> None:
    random = np.random.default_rng(width * height)
    pixels = random.integers(0, 256, (height, width, bands), np.uint8)
    if not noisy:
        pixels = photograph(width, height, bands)
    resize = {
        "width": data.draw(st.integers(1, width)),
        "height": data.draw(st.integers(1, height)),
        "mode": mode,
    }
    request = {"resize": resize}
    if data.draw(st.booleans()):
        request["crop"] = {"width": (width + 1) // 2, "height": (height + 1) // 2}
    source = stored(pixels, make_chunk(b"pHYs", _PHYS))
    found = at_once(source, request)
    if mode == "stretch" and "crop" not in request and width <= 64:
        assert found is not None
    if found is not None:
        assert found == by_libvips(source, request)
        assert found == imgsvc.process(source, {**request, "output": {"format": "png"}}).data


@pytest.mark.parametrize("want", [(32, 32), (16, 16), (5, 3), (64, 64), (1, 1)])
@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_usual_icons_are_made_at_once(want: tuple[int, int], bands: int) -> None:
    request = {"resize": {"width": want[0], "height": want[1], "mode": "stretch"}}
    source = stored(photograph(64, 64, bands))
    found = at_once(source, request)
    assert found is not None
    assert found == by_libvips(source, request)


@given(
    width=st.integers(8, 90),
    height=st.integers(8, 70),
    shrink=st.sampled_from([1, 2, 4, 8]),
    noisy=st.booleans(),
    mode=st.sampled_from(["stretch", "fit", "fill", "auto"]),
    data=st.data(),
)
def test_webps_of_jpegs_are_the_same_as_from_libvips(
    width: int, height: int, shrink: int, noisy: bool, mode: str, data: Any
) -> None:
    width, height = width * shrink, height * shrink
    pixels = np.random.default_rng(width * height).integers(0, 256, (height, width, 3), np.uint8)
    if not noisy:
        pixels = np.resize(coffee(), (height, width, 3))
    resize = {
        "width": data.draw(st.integers(1, width // shrink)),
        "height": data.draw(st.integers(1, height // shrink)),
        "mode": mode,
    }
    output = {"format": "webp", "quality": data.draw(st.integers(1, 89))}
    request: dict[str, Any] = {"resize": resize, "output": output}
    if data.draw(st.booleans()):
        request["crop"] = {"width": width // 2, "height": height // 2}
    source = jpeg(pixels)
    found = webp_at_once(source, request)
    if found is not None:
        assert found == webp_by_libvips(source, request)
        assert (
            found
            == imgsvc.process(source, {**request, "output": {"format": "webp", **request["output"]}}).data
        )


@pytest.mark.parametrize(
    ("have", "resize"),
    [
        ((640, 480), {"width": 200}),
        ((800, 600), {"width": 260}),
        ((640, 480), {"width": 100, "height": 100, "mode": "stretch"}),
        ((640, 480), {"width": 80, "height": 120, "mode": "fit"}),
        ((1600, 1200), {"width": 230}),
        ((3200, 2400), {"width": 230}),
        ((400, 300), {"width": 399}),
    ],
)
def test_usual_thumbnails_of_jpegs_are_made_at_once(have: tuple[int, int], resize: dict[str, Any]) -> None:
    source = jpeg(np.resize(coffee(), (have[1], have[0], 3)))
    found = webp_at_once(source, {"resize": resize})
    assert found is not None
    assert found == webp_by_libvips(source, {"resize": resize})


@pytest.mark.parametrize("format", ["jpg", "png"])
@pytest.mark.parametrize("resize", [{"width": 32}, {"width": 100, "height": 40, "mode": "stretch"}, None])
@pytest.mark.parametrize("dpi", [None, (300, 150), (96, 96), (1, 1)])
def test_jpegs_and_pngs_of_small_jpegs_are_made_at_once(
    format: str, resize: dict[str, Any] | None, dpi: tuple[int, int] | None
) -> None:
    source = jpeg(coffee()[100:260, 200:400], **({} if dpi is None else {"dpi": dpi}))
    request = {"output": {"format": format}, **({} if resize is None else {"resize": resize})}
    found = at_once(source, request)
    assert found is not None
    assert found == imgsvc.process(source, request).data
    with libvips_alone():
        assert imgsvc.process(source, request).data == found


@pytest.mark.parametrize("side", [5, 40, 63, 64, 200])
def test_a_jpeg_is_decoded_once(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []

    def counted(name: str, decode: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: decoded.append(name) or decode(*args, **options)

    decode = turbojpeg.decoder()
    assert decode is not None
    monkeypatch.setattr(turbojpeg, "decoder", lambda: counted("TurboJPEG", decode))
    monkeypatch.setattr(reading, "open_lazily", counted("libvips", reading.open_lazily))
    source = jpeg(coffee()[:side, :side])
    for metadata in ("strip", "keep"):
        imgsvc.process(source, {"resize": {"width": 4}, "output": {"format": "png", "metadata": metadata}})
    assert decoded == ["TurboJPEG", "TurboJPEG"]


@pytest.mark.parametrize("unit", [0, 1, 2, 3])
@pytest.mark.parametrize("density", [(1, 1), (1, 9), (9, 1), (300, 150), (0, 5), (5, 0)])
def test_a_resolution_is_understood_as_by_libvips(unit: int, density: tuple[int, int]) -> None:
    source = bytearray(jpeg(coffee()[100:164, 200:264]))
    place = source.index(b"JFIF") + 7
    source[place : place + 5] = struct.pack(">BHH", unit, *density)
    request = {"resize": {"width": 32}, "output": {"format": "png"}}
    found = at_once(bytes(source), request)
    assert found is not None
    with libvips_alone():
        assert imgsvc.process(bytes(source), request).data == found


def test_the_last_of_several_resolutions_counts_as_by_libvips() -> None:
    head = b"\xff\xe0\0\x10JFIF\0\1\1\1" + struct.pack(">HH", 30, 15) + bytes(2)
    sources = [jpeg(coffee()[100:164, 200:264], dpi=(96, 96)) for _ in range(2)]
    sources[1] = sources[1][:2] + head + sources[1][2:]
    request = {"resize": {"width": 32}, "output": {"format": "png"}}
    found = [at_once(source, request) for source in sources]
    with libvips_alone():
        assert [imgsvc.process(source, request).data for source in sources] == found


@pytest.mark.parametrize("unit", [None, 0, 2, 3])
@pytest.mark.parametrize(
    "resolutions", [(), (300.0,), (300.0, 150.0), (72.5, 72.5), (1.0, 1.0), (0.0, 300.0)]
)
@pytest.mark.parametrize("dpi", [None, (96, 96)])
def test_a_resolution_in_exif_is_understood_as_by_libvips(
    unit: int | None, resolutions: tuple[float, ...], dpi: tuple[int, int] | None
) -> None:
    exif = Image.Exif()
    exif[0x010E] = "coffee"
    exif.update(zip((0x011A, 0x011B), resolutions, strict=False))
    if unit is not None:
        exif[0x0128] = unit
    options = {} if dpi is None else {"dpi": dpi}
    source = jpeg(coffee()[100:164, 200:264], exif=exif.tobytes(), **options)
    request = {"resize": {"width": 32}, "output": {"format": "png"}}
    usual = (not resolutions and unit is None) or (resolutions[1:] and min(resolutions) > 1 and unit != 0)
    assert (at_once(source, request) is not None) == bool(usual)
    with libvips_alone():
        expected = imgsvc.process(source, request).data
    assert imgsvc.process(source, request).data == expected


def test_metadata_that_is_kept_is_left_to_libvips() -> None:
    exif = Image.Exif()
    exif[0x013B] = "Ann"
    source = jpeg(coffee()[100:164, 200:264], exif=exif.tobytes())
    request = {"resize": {"width": 32}, "output": {"format": "png", "metadata": "copyright"}}
    assert at_once(source, request) is None
    with Image.open(io.BytesIO(imgsvc.process(source, request).data)) as found:
        assert found.getexif()[0x013B] == "Ann"


def test_damaged_jpegs_are_refused_as_by_libvips() -> None:
    source = jpeg(np.resize(coffee(), (128, 192, 3)))
    request = {"resize": {"width": 60}}
    random, refused = np.random.default_rng(6), 0
    for place in random.integers(2, len(source), 300):
        data = bytearray(source)
        data[place] ^= 1 << random.integers(8)
        outcomes: list[object] = []
        for make in (webp_at_once, webp_by_libvips):
            try:
                outcomes.append(make(bytes(data), request))
            except imgsvc.ImgsvcError as error:
                outcomes.append(error.slug)
        assert outcomes[0] in (None, outcomes[1])
        refused += isinstance(outcomes[1], str)
    assert 10 < refused < 290


@pytest.mark.parametrize(
    "options",
    [
        {"progressive": True},
        {"icc_profile": ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()},
        {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"},
    ],
    ids=["progressive", "profile", "turned"],
)
def test_unusual_jpegs_are_left_to_libvips(options: dict[str, Any]) -> None:
    source = jpeg(np.resize(coffee(), (128, 192, 3)), **options)
    assert webp_at_once(source, {"resize": {"width": 60}}) is None


@pytest.mark.parametrize(
    "request_",
    [
        {"resize": {"width": 600}},
        {"adjust": {"contrast": 20}},
        {"output": {"metadata": "keep"}},
    ],
)
def test_what_else_is_asked_of_jpegs_is_left_to_libvips(request_: dict[str, Any]) -> None:
    source = jpeg(np.resize(coffee(), (256, 384, 3)))
    assert webp_at_once(source, {"resize": {"width": 100}}) is not None
    assert webp_at_once(source, {"resize": {"width": 100}, **request_}) is None


@pytest.mark.parametrize(
    "output",
    [
        {"lossless": True},
        {"quality": 95},
        {"max_bytes": 4000},
        {"format": "jpg", "subsampling": "444"},
        {"format": "gif"},
        {"format": "png", "colors": 16},
        {"format": "png", "encoding": "progressive"},
        {"format": "png", "max_bytes": 40_000},
        {"format": "tiff"},
    ],
)
@pytest.mark.parametrize("make", [jpeg, stored], ids=["jpeg", "png"])
def test_encoders_take_what_was_reduced_in_an_array(make: Any, output: dict[str, Any]) -> None:
    source = make(photograph(120, 90, 3))
    request = {"resize": {"width": 60}, "output": {"format": "webp", **output}}
    assert at_once(source, request) is not None
    found = imgsvc.process(source, request)
    with libvips_alone():
        expected = imgsvc.process(source, request)
    assert (found.data, found.output) == (expected.data, expected.output)


def test_any_damage_is_left_to_libvips() -> None:
    source = stored(photograph(24, 20, 3))
    request = {"resize": {"width": 12}}
    random = np.random.default_rng(5)
    refused = 0
    for place in random.integers(8, len(source), 300):
        data = bytearray(source)
        data[place] ^= 1 << random.integers(8)
        try:
            expected: object = by_libvips(bytes(data), request)
        except (pyvips.Error, imgsvc.ImgsvcError):
            expected = None
        try:
            found: object = imgsvc.process(bytes(data), {**request, "output": {"format": "png"}}).data
        except imgsvc.SourceError:
            found, refused = None, refused + 1
        assert found is None or found == expected
    assert refused > 250


@pytest.mark.parametrize("left", [200, 12, 4, 1])
def test_missing_ends_are_left_to_libvips(left: int) -> None:
    source = stored(photograph(24, 20, 3))
    assert small_png.read(probe(ByteSource(source))) is not None
    assert small_png.read(probe(ByteSource(source[:-left]))) is None


def _idat_of(lines: bytes) -> Callable[[bytes], bytes]:
    """Replace the data by other lines."""
    return lambda data: (
        data[: data.index(b"IDAT") - 4] + make_chunk(b"IDAT", zlib.compress(lines)) + make_chunk(b"IEND")
    )


UNUSUAL = {
    "transparent color": lambda data: data[:33] + make_chunk(b"tRNS", bytes(6)) + data[33:],
    "palette": lambda data: data[:33] + make_chunk(b"PLTE", bytes(6)) + data[33:],
    "unknown, but needed": lambda data: data[:-12] + make_chunk(b"ABCD") + data[-12:],
    "resolution without a unit": lambda data: data[:33] + make_chunk(b"pHYs", bytes(9)) + data[33:],
    "resolution in EXIF only": lambda data: (
        data[:33] + make_chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\0") + data[33:]
    ),
    "too few lines": _idat_of(bytes(19 * 73)),
    "too many lines": _idat_of(bytes(21 * 73)),
    "unknown filter": _idat_of(b"\x09" * 20 * 73),
    "wrong checksum": lambda data: data[:-13] + bytes([data[-13] ^ 1]) + data[-12:],
    "data in two places": lambda data: (
        data[:-12] + make_chunk(b"tEXt", b"a\0b") + make_chunk(b"IDAT") + data[-12:]
    ),
    "very long": lambda data: data[:33] + make_chunk(b"tEXt", b"a\0" + b"b" * (1 << 21)) + data[33:],
}


@pytest.mark.parametrize("name", ["libdeflate", "zlib"])
@pytest.mark.parametrize("what", ["too few lines", "too many lines", "no end", "sound"])
def test_both_decompressors_tell_the_same(name: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "zlib":
        monkeypatch.setattr(small_png, "decompressor", lambda: small_png._by_zlib)
    source = stored(photograph(24, 20, 3))
    edits: dict[str, Callable[[bytes], bytes]] = {
        **UNUSUAL,
        "sound": bytes,
        "no end": lambda data: (
            data[: data.index(b"IDAT") - 4]
            + make_chunk(b"IDAT", zlib.compress(bytes(20 * 73))[:-4])
            + make_chunk(b"IEND")
        ),
    }
    found = small_png.read(probe(ByteSource(edits[what](source))))
    assert (found is not None) == (what == "sound")
    if found is not None:
        assert np.array_equal(found.pixels, photograph(24, 20, 3))


@pytest.mark.parametrize("what", UNUSUAL)
def test_unusual_files_are_left_to_libvips(what: str) -> None:
    source = stored(photograph(24, 20, 3))
    assert small_png.read(probe(ByteSource(UNUSUAL[what](source)))) is None


@pytest.mark.parametrize(
    "request_",
    [
        {"resize": {"width": 200}},
        {"adjust": {"contrast": 20}},
        {"flip": {"horizontal": True}},
        {"output": {"metadata": "keep"}},
    ],
)
def test_what_else_is_asked_for_is_left_to_libvips(request_: dict[str, Any]) -> None:
    assert at_once(stored(photograph(64, 64, 3)), request_) is None


def test_parts_of_large_pictures_are_left_to_libvips() -> None:
    crop = {"width": 20, "height": 20}
    assert at_once(stored(np.zeros((150, 200, 3), np.uint8)), {"crop": crop}) is not None
    assert at_once(stored(np.zeros((200, 200, 3), np.uint8)), {"crop": crop}) is None


def test_one_thread_takes_few_pixels_to_an_encoder() -> None:
    assert Raster(photograph(40, 30, 3), (3.0, 3.0)).to_vips().get("concurrency") == 1


def test_the_resolution_stays() -> None:
    source = stored(photograph(40, 40, 3), make_chunk(b"pHYs", _PHYS))
    assert b"pHYs" + _PHYS in imgsvc.process(source, {"resize": {"width": 20}}).data


def test_they_go_to_files_and_report_their_parts(tmp_path: Any) -> None:
    target = tmp_path / "icon.png"
    result = imgsvc.process(stored(photograph(40, 40, 4)), {"resize": {"width": 20}}, target)
    assert (result.output.width, result.output.height, result.output.alpha) == (20, 20, True)
    assert target.stat().st_size == result.output.bytes
    assert result.timing.decode > 0
    assert result.timing.encode > 0


def webp(pixels: Pixels, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(file, "WEBP", **options)
    return file.getvalue()


@given(
    width=st.integers(1, 90),
    height=st.integers(1, 70),
    bands=st.integers(3, 4),
    noisy=st.booleans(),
    lossless=st.booleans(),
    quality=st.integers(0, 100),
)
def test_webps_are_decoded_to_the_same_pixels_as_by_libvips(
    width: int, height: int, bands: int, noisy: bool, lossless: bool, quality: int
) -> None:
    pytest.importorskip("imagecodecs")
    pixels = photograph(width, height, bands)
    if noisy:
        pixels = np.random.default_rng(width).integers(0, 256, (height, width, bands), np.uint8)
    source = webp(pixels, lossless=lossless, quality=quality)
    settings = compile_plan(imgsvc.parse({}), imgsvc.inspect(source)).load
    raster = load(probe(ByteSource(source)), settings)
    assert isinstance(raster, Raster)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webp_reading, "decoder", lambda: None)
        image = load(probe(ByteSource(source)), settings)
    assert isinstance(image, pyvips.Image)
    assert np.array_equal(raster.pixels, image.numpy())
    assert raster.to_vips().get("xres") == image.get("xres")
    assert raster.to_vips().interpretation == image.interpretation


def test_damaged_webps_are_refused_as_by_libvips() -> None:
    source = webp(photograph(90, 70, 3))
    random, refused = np.random.default_rng(8), 0
    for place in random.integers(8, len(source), 300):
        data = bytearray(source)
        data[place] ^= 1 << random.integers(8)
        outcomes: list[object] = []
        for decode in (webp_reading.decoder(), None):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(webp_reading, "decoder", lambda decode=decode: decode)
                try:
                    outcomes.append(imgsvc.to_numpy(bytes(data)).tobytes())
                except imgsvc.ImgsvcError as error:
                    outcomes.append((error.slug, str(error)))
        assert outcomes[0] == outcomes[1]
        refused += isinstance(outcomes[0], tuple)
    assert 5 < refused < 295


def test_webps_with_more_than_a_still_are_left_to_libvips() -> None:
    pixels, exif = photograph(64, 48, 4), Image.Exif()
    exif[0x011A] = 300.0
    frames = [Image.fromarray(pixels), Image.fromarray(255 - pixels)]
    moving, file = io.BytesIO(), io.BytesIO()
    frames[0].save(moving, "WEBP", save_all=True, append_images=frames[1:])
    frames[0].save(file, "WEBP", exif=exif.tobytes())
    one_frame = moving.getvalue()[: moving.getvalue().rindex(b"ANMF")]
    one_frame = one_frame[:4] + struct.pack("<I", len(one_frame) - 8) + one_frame[8:]
    assert imgsvc.inspect(one_frame).frames == 1
    for source in (moving.getvalue(), one_frame, file.getvalue()):
        loaded = load(probe(ByteSource(source)), LoadSettings(array=True))
        assert isinstance(loaded, pyvips.Image)
    assert isinstance(load(probe(ByteSource(webp(pixels))), LoadSettings(array=True)), Raster)
