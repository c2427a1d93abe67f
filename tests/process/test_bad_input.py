"""Bad pictures and too much work end in one clear error, with nothing written."""

from __future__ import annotations

import io
import re
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from tests.support.photos import as_vips, coffee


def _png_header(width: int, height: int) -> bytes:
    ihdr = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    idat = b"IDAT" + zlib.compress(b"\0" * 100)
    chunks = (ihdr, idat, b"IEND")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks
    )


def _jpeg() -> bytes:
    data: bytes = as_vips(coffee()).jpegsave_buffer()
    return data


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty_source"),
    "text": (b"this is no picture", "unsupported_format"),
    "html": (b"<!DOCTYPE html><html><body>404</body></html>", "unsupported_format"),
    "a name alone": (b"\xff\xd8\xff", "corrupt_image"),
    "truncated": (_jpeg()[:5000], "corrupt_image"),
    "noise after a head": (_jpeg()[:300] + bytes(range(256)) * 50, "corrupt_image"),
    "zero-sized": (_png_header(0, 5), "corrupt_image"),
    "absurdly large": (_png_header(2**31 - 1, 2**31 - 1), "image_too_large"),
    "larger than allowed": (_png_header(20_000, 20_000), "image_too_large"),
    "too little data": (_png_header(100, 100), "corrupt_image"),
}


@pytest.mark.parametrize("kind", BAD)
def test_one_error_with_its_slug_and_nothing_written(kind: str, tmp_path: Path) -> None:
    data, slug = BAD[kind]
    with pytest.raises(imgsvc.ImgsvcError) as caught:
        imgsvc.process(data, {"resize": {"width": 50}}, tmp_path / "out.jpg")
    assert caught.value.slug == slug
    assert caught.value.message.count("\n") == 0
    assert len(caught.value.message) < 250
    assert list(tmp_path.iterdir()) == []


def test_content_counts_and_not_the_name(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(as_vips(coffee()).pngsave_buffer())
    assert imgsvc.process(path).input.format == "png"


def test_limits_refuse_before_decoding() -> None:
    """A picture of 400 megapixels costs no more memory than its header."""
    data = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(data, "PNG")
    script = (
        "import resource, sys, imgsvc_core as imgsvc\n"
        "data = sys.stdin.buffer.read()\n"
        "imgsvc.process\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    imgsvc.process(data)\n"
        "except imgsvc.ImageTooLarge as error:\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    grown = subprocess.check_output([sys.executable, "-c", script], input=data.getvalue())
    assert int(grown) < 4_000


@pytest.mark.parametrize(
    ("limits", "slug"),
    [
        (imgsvc.Limits(source_bytes=1000), "source_too_large"),
        (imgsvc.Limits(source_pixels=1000), "image_too_large"),
        (imgsvc.Limits(output_pixels=1000), "output_too_large"),
        (imgsvc.Limits(output_side=500), "output_too_large"),
    ],
)
def test_each_limit_has_its_error(limits: imgsvc.Limits, slug: str) -> None:
    with pytest.raises(imgsvc.LimitExceeded) as caught:
        imgsvc.process(_jpeg(), limits=limits)
    assert caught.value.slug == slug


def test_file_objects_are_read_no_further_than_the_limit() -> None:
    class Endless(io.RawIOBase):
        taken = 0

        def read(self, size: int = -1) -> bytes:
            self.taken += size
            return b"\0" * size

    endless = Endless()
    with pytest.raises(imgsvc.SourceTooLarge):
        imgsvc.process(endless, limits=imgsvc.Limits(source_bytes=3_000_000))
    assert endless.taken < 6_000_000


def test_a_closed_file_is_told() -> None:
    file = io.BytesIO(_jpeg())
    file.close()
    with pytest.raises(
        imgsvc.SourceError, match=r"Source file cannot be read: I/O operation on closed file\.$"
    ):
        imgsvc.process(file)


@pytest.mark.parametrize("name", ["name", "accept", "watermarks"])
def test_options_of_wrong_types_are_named_though_nothing_needs_them(name: str) -> None:
    options: dict[str, Any] = {name: 5}
    with pytest.raises(TypeError, match=rf"^Option '{name}' must be .*, got int\.$"):
        imgsvc.process(_jpeg(), **options)


@pytest.mark.parametrize(
    ("variants", "told"),
    [
        ([{}], "Variants must be a mapping of names and requests, got list."),
        ({5: {}}, "Names of variants must be texts, got int."),
    ],
)
def test_variants_of_wrong_types_are_told(variants: Any, told: str) -> None:
    with pytest.raises(TypeError, match=re.escape(told)):
        imgsvc.process_variants(_jpeg(), variants)


def test_the_variant_whose_request_is_wrong_is_named() -> None:
    variants: dict[str, Any] = {"small": {"resize": {"width": 5}}, "odd": {"resize": {"width": 0}}}
    with pytest.raises(imgsvc.SpecError, match="Variant 'odd': Resize 'width' parameter must be"):
        imgsvc.process_variants(_jpeg(), variants)


class _Unknown:
    """A class that no request knows."""


@pytest.mark.parametrize(
    "wrong", [_Unknown(), _Unknown, imgsvc.Resize, 5, b"x", {1}, [None], [[]], [_Unknown()]]
)
def test_operations_of_unknown_types_are_told_in_a_sentence(wrong: Any) -> None:
    for request in (wrong, {"resize": wrong}, {"filter": [wrong]}):
        with pytest.raises(imgsvc.SpecError, match=r" must (be|hold) .*, got ") as caught:
            imgsvc.process(np.zeros((4, 5, 3), np.uint8), request)
        assert len(caught.value.message) < 250


def test_time_is_limited() -> None:
    source = as_vips(np.tile(coffee(), (8, 8, 1))).jpegsave_buffer()
    request = {"filter": {"blur": {"mode": "zoom", "value": 100}}, "output": {"format": "webp", "effort": 9}}
    started = time.monotonic()
    with pytest.raises(imgsvc.TimeLimitExceeded, match=r"longer than the 0\.2 seconds"):
        imgsvc.process(source, request, limits=imgsvc.Limits(seconds=0.2))
    stopped = time.monotonic() - started
    assert stopped < 30


def test_a_crop_outside_of_the_picture_is_an_error_with_numbers() -> None:
    with pytest.raises(imgsvc.UnsupportedOperation, match="picture of 600 x 400 pixels, got 700 and 0"):
        imgsvc.process(coffee(), {"crop": {"width": 10, "height": 10, "x": 700}})


def test_an_unknown_watermark_is_a_problem_of_the_request() -> None:
    with pytest.raises(imgsvc.SpecError) as caught:
        imgsvc.process(coffee(), {"watermark": {"id": "nobody"}})
    assert [problem.path for problem in caught.value.problems] == ["watermark.id"]
