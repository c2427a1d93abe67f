"""The memory that a plan needs at most is known before anything is decoded, and too much is refused."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan.memory import border_search_bound, decoded_bound
from imgsvc_core.processing import process_variants
from imgsvc_core.spec import Spec, Watermark
from imgsvc_core.spec.thumbor_filters import Mark
from tests.support.encoded import gif_animated

TO_JPEG = {"output": {"format": "jpg"}}


def deep_psd() -> bytes:
    """Return the start of a PSD of 100 megapixels in RGB with 32 bits."""
    return struct.pack(">4sH6xHIIHH", b"8BPS", 1, 3, 10_000, 10_000, 32, 3) + bytes(12) + bytes(2)


def small_jpeg2000() -> bytes:
    """Return a JPEG 2000 file of some hundred bytes, whose header states 100 megapixels."""
    file = io.BytesIO()
    Image.new("RGB", (64, 64)).save(file, "JPEG2000")
    data = bytearray(file.getvalue())
    header, size = data.index(b"ihdr") + 4, data.index(b"\xff\x51") + 6
    struct.pack_into(">II", data, header, 10_000, 10_000)
    struct.pack_into(">II8xII", data, size, 10_000, 10_000, 10_000, 10_000)
    return bytes(data)


def long_apng() -> bytes:
    """Return an APNG of 500 frames of 600 x 1000, each of a few bytes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    pixels = zlib.compress(bytes(1000 * (1 + 4 * 600)))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 600, 1000, 8, 6, 0, 0, 0))
    data += chunk(b"acTL", struct.pack(">II", 500, 0))
    for frame in range(500):
        number = max(0, 2 * frame - 1)
        data += chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, 600, 1000, 0, 0, 1, 10, 0, 0))
        data += chunk(b"fdAT", struct.pack(">I", number + 1) + pixels) if frame else chunk(b"IDAT", pixels)
    return data + chunk(b"IEND", b"")


def many_channels() -> bytes:
    """Return a TIFF of .9 megapixels with 1,000 channels, in one strip of some bytes."""
    entries = [
        (256, 3, 1, 950), (257, 3, 1, 950), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (273, 4, 1, 200),
        (277, 3, 1, 1000), (278, 3, 1, 950), (279, 4, 1, 16), (338, 3, 1, 0),
    ]  # fmt: skip
    directory = struct.pack("<H", len(entries))
    directory += b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    return (b"II*\0" + struct.pack("<I", 8) + directory).ljust(200, b"\0") + zlib.compress(bytes(999))


@pytest.mark.parametrize("make", [deep_psd, small_jpeg2000, long_apng])
def test_files_within_all_other_limits_are_refused_by_their_memory(make: Any) -> None:
    with pytest.raises(imgsvc.MemoryLimitExceeded) as caught:
        imgsvc.process(make(), {"output": {"format": "apng" if make is long_apng else "png"}})
    assert "bytes of memory for this image; at most 1,800,000,000 are allowed" in caught.value.message


def test_channels_are_limited() -> None:
    with pytest.raises(imgsvc.ImageTooLarge, match="has 1,000 channels; at most 64 are allowed"):
        imgsvc.process(many_channels(), TO_JPEG)


@pytest.mark.parametrize("make", [deep_psd, small_jpeg2000, long_apng, many_channels])
def test_headers_are_read_without_limits(make: Any) -> None:
    assert imgsvc.inspect(make()).width in (600, 950, 10_000)


def photograph(format: str, megapixels: int, **facts: Any) -> imgsvc.ImageInfo:
    side = round((megapixels * 1e6) ** 0.5)
    return imgsvc.ImageInfo(
        format=format, width=side, height=side, colorspace="srgb", bytes=megapixels * 400_000, **facts
    )


@pytest.mark.parametrize("megapixels", [12, 24, 50])
@pytest.mark.parametrize("format", ["jpg", "png", "webp", "heic", "tiff"])
@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"resize": {"width": 1200}},
        {"rotate": {"angle": 90}, "auto": {"enhance": True}},
        {"output": {"format": "webp"}},
        {"output": {"format": "avif"}},
        {"adjust": {"sharpen": 20, "contrast": 10}, "resize": {"width": 2000}},
    ],
)
def test_photographs_are_not_refused(format: str, megapixels: int, request_: dict[str, Any]) -> None:
    if not request_ and format == "heic":
        request_ = TO_JPEG
    imgsvc.explain(request_, photograph(format, megapixels, interlaced=format == "jpg"))


@pytest.mark.parametrize("source", ["png", "jp2"])
def test_deep_photographs_are_not_refused_as_jpeg_2000(source: str) -> None:
    imgsvc.explain({"output": {"format": "jp2", "lossless": True}}, photograph(source, 40, depth=16))


@pytest.mark.parametrize("target", ["gif", "webp", "apng"])
def test_animations_of_a_hundred_frames_are_not_refused(target: str) -> None:
    info = imgsvc.ImageInfo(
        format="gif", width=1280, height=720, colorspace="palette", bytes=40_000_000, frames=100
    )
    imgsvc.explain({"resize": {"width": 480}, "output": {"format": target}}, info)


@pytest.mark.parametrize("format", [row.name for row in FORMATS.values() if row.animation])
def test_decoders_of_one_frame_after_the_other_hold_one(format: str) -> None:
    few, more = (
        imgsvc.ImageInfo(format=format, width=400, height=300, colorspace="srgb", bytes=9000, frames=frames)
        for frames in (20, 30)
    )
    load = LoadSettings(all_frames=True)
    grown = decoded_bound(more, load) - decoded_bound(few, load)
    memory, pixels = FORMATS[format].reader.memory, 10 * 400 * 300 * 3
    assert (grown == pixels) == (memory.one_by_one or not memory.copies())


def test_scores_of_transparent_pictures_are_those_of_two_grounds() -> None:
    def scoring(*, alpha: bool) -> int:
        info = photograph("png", 3, alpha=alpha)
        without, with_look = (
            imgsvc.explain({"output": {"format": "webp", **more}}, info).memory for more in ({}, {"look": 80})
        )
        return with_look - without

    assert scoring(alpha=True) - scoring(alpha=False) > 20 * 3_000_000  # bytes of what is kept of a ground


def test_what_the_bound_grows_with() -> None:
    def bound(request: dict[str, Any] | None = None, **facts: Any) -> int:
        info = photograph("png", 12, **facts)
        return imgsvc.explain({"output": {"format": "png"}, **(request or {})}, info).memory

    least = bound()
    assert bound(alpha=True) > least
    assert bound(depth=16) > least
    assert bound(interlaced=True) > least
    assert bound({"rotate": {"angle": 90}}) > least
    smaller = {"resize": {"width": 1000}}
    assert bound({**smaller, "rotate": {"angle": 90}}) >= bound(smaller) + 1000 * 1000 * 3
    blurred = {"filter": {"blur": {"mode": "gaussian", "value": 50}}}
    assert bound(blurred) > bound({"rotate": {"angle": 90}})
    assert bound({**blurred, "resize": {"width": 300}}) < bound({"rotate": {"angle": 90}})
    webp = bound({"output": {"format": "webp"}})
    assert bound({"output": {"format": "webp", "lossless": True}}) > webp
    assert bound({"output": {"format": "webp", "max_bytes": 10_000}}) > webp + 35_000_000
    decoded, scored = 2 * 3 * 12_000_000, (20 + 40) * 6_000_000  # at most 6 megapixels are scored at once
    assert bound({"output": {"format": "webp", "look": 80}}) > webp + decoded + scored


def test_a_decoded_picture_has_the_size_of_its_samples() -> None:
    info = imgsvc.ImageInfo(
        format="pixels", width=10, height=20, colorspace="srgb", bytes=0, alpha=True, depth=16, frames=3
    )
    assert decoded_bound(info, LoadSettings()) == 10 * 20 * 4 * 2
    assert decoded_bound(info, LoadSettings(all_frames=True, scale=0.5)) == 5 * 10 * 4 * 2 * 3


def test_shadows_count() -> None:
    pytest.importorskip("fontpkg_inter")

    def bound(blur: int, *, of_text: bool) -> int:
        shadow, text = {"shadow": {"blur": blur}}, {"text": "Big", "size": 500}
        layer = {"text": {**text, **shadow}} if of_text else {"text": text, **shadow}
        return imgsvc.explain({"layers": [layer]}, photograph("png", 12)).memory

    for of_text in (False, True):
        assert bound(300, of_text=of_text) > bound(0, of_text=of_text) + 3 * 900 * 500


def test_layers_that_are_kept_for_later_frames_count_together() -> None:
    layer, side = {"shape": {"kind": "rectangle", "color": "f00"}}, 1000

    def bound(layers: int, frames: int) -> int:
        info = imgsvc.ImageInfo(
            format="gif", width=side, height=side, colorspace="srgb", bytes=9, frames=frames
        )
        return imgsvc.explain({"layers": [layer] * layers}, info).memory

    assert bound(3, frames=1) == bound(2, frames=1)
    assert bound(3, frames=3) >= bound(2, frames=3) + 4 * side * side


@pytest.mark.parametrize("name", [name for name, row in FORMATS.items() if row.writer is not None])
def test_every_encoder_counts(name: str) -> None:
    info = photograph("jpg", 20)
    output = imgsvc.Output(**{"format" if FORMATS[name].writable else "internal_format": name})
    large = imgsvc.explain(imgsvc.Spec(output=output), info).memory
    small = imgsvc.explain(imgsvc.Spec(resize=imgsvc.Resize(width=100), output=output), info).memory
    assert large > small + 20_000_000


def test_a_limit_of_the_caller() -> None:
    pixels = np.zeros((1000, 1000, 3), np.uint8)
    needed = imgsvc.process(pixels, {"output": {"format": "png"}}).plan.memory
    for most in (1, 900_000, needed - 1):
        told = f"could need {needed:,} bytes of memory for this image; at most {most:,} (is|are) allowed: "
        with pytest.raises(imgsvc.MemoryLimitExceeded, match=told):
            imgsvc.process(pixels, {"output": {"format": "png"}}, limits=imgsvc.Limits(memory_bytes=most))
    imgsvc.process(pixels, {"output": {"format": "png"}}, limits=imgsvc.Limits(memory_bytes=needed))
    imgsvc.process(pixels, {"output": {"format": "png"}}, limits=imgsvc.Limits(memory_bytes=None))


def test_the_picture_that_variants_share_counts() -> None:
    source = photograph_file(1500)
    variants = {str(angle): {"rotate": {"angle": angle}, "output": {"format": "png"}} for angle in (90, 180)}
    plan = max(
        (result.plan for result in process_variants(source, variants).values()), key=lambda plan: plan.memory
    )
    needed = plan.memory + decoded_bound(plan.info, plan.load)
    process_variants(source, variants, limits=imgsvc.Limits(memory_bytes=needed))
    with pytest.raises(imgsvc.MemoryLimitExceeded, match=f"could need {needed:,} bytes"):
        process_variants(source, variants, limits=imgsvc.Limits(memory_bytes=needed - 1))


def test_a_watermark_counts_too() -> None:
    pixels, mark = np.zeros((1000, 1000, 3), np.uint8), photograph_file(3000)
    request = {"watermark": {"id": "w"}, "output": {"format": "png"}}
    needed = imgsvc.process(pixels, request, watermarks={"w": mark}).plan.memory
    with pytest.raises(imgsvc.MemoryLimitExceeded, match=r"^Watermark 'w': "):
        imgsvc.process(pixels, request, watermarks={"w": mark}, limits=imgsvc.Limits(memory_bytes=needed + 1))


def _marks(number: int, side: int) -> list[Mark]:
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}"/>'
    return [Mark(watermark=Watermark(id="w"), request=Spec(), drawing=drawing)] * number


def test_pictures_that_are_kept_for_later_frames_count_together() -> None:
    one, other = _marks(1, 3000), _marks(1, 2999)
    limits = imgsvc.Limits(memory_bytes=340_000_000)

    def make(*marks: Mark, frames: int) -> None:
        request = Spec(filter=marks, output=imgsvc.Output(format="gif", frames=frames))
        imgsvc.process(gif_animated().data, request, limits=limits)

    make(*one, frames=3)
    make(*one, *other, frames=1)
    with pytest.raises(imgsvc.MemoryLimitExceeded, match=r"^Watermark 'w': "):
        make(*one, *other, frames=3)


def test_pictures_laid_over_each_other_need_another_copy() -> None:
    info = imgsvc.ImageInfo(format="png", width=1000, height=1000, colorspace="srgb", bytes=9)
    one, two, many = (imgsvc.explain(Spec(filter=_marks(number, 9)), info).memory for number in (1, 2, 9))
    assert two - one == 3_000_000
    assert many == two


def photograph_file(side: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, "PNG")
    return file.getvalue()


def test_the_search_for_borders_counts() -> None:
    info = photograph("jpg", 50)
    plan = imgsvc.explain({"trim": {"threshold": 10}, "resize": {"width": 10}}, info)
    assert plan.memory >= border_search_bound(info) > imgsvc.explain({"resize": {"width": 10}}, info).memory
