"""Pixels of a source that stay decoded from one request to the next."""

from __future__ import annotations

import gc
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.sources.kept_pixels import keeping_pixels
from imgsvc_core.sources.opening import Opened

REQUESTS: tuple[dict[str, Any], ...] = (
    {"adjust": {"exposure": 20}},
    {"adjust": {"saturation": -40}, "rotate": {"angle": 90}},
    {"resize": {"width": 90}, "output": {"format": "png"}},
    {"output": {"quality": 30}},
    {"adjust": {"exposure": 20}},
)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The formats of the sources that were decoded so far."""
    formats: list[str] = []
    load = Opened.load

    def counting(self: Opened, settings: Any) -> Any:
        formats.append(self.info.format)
        return load(self, settings)

    monkeypatch.setattr(Opened, "load", counting)
    return formats


def photo(seed: int, side: int = 600, **options: Any) -> bytes:
    """Return a smooth random picture of a side in pixels."""
    noise = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    picture = Image.fromarray(noise).resize((side, side), Image.Resampling.BICUBIC)
    given: dict[str, Any] = {"format": "JPEG", "quality": 92, **options}
    picture.save(file, **given)
    return file.getvalue()


def kept(source: bytes, request: dict[str, Any], **options: Any) -> bytes:
    """Return the result of a request with kept pixels, as a worker makes it."""
    file = io.BytesIO()
    with keeping_pixels():
        imgsvc.process(source, request, file, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"progressive": True},
        {"format": "PNG"},
        {"format": "WEBP"},
        {"side": 100},
        {"exif": bytes.fromhex("45786966000049492a000800000001001201030001000000060000000000")},
    ],
    ids=str,
)
def test_results_are_those_of_a_source_that_is_decoded_again(options: dict[str, Any]) -> None:
    source = photo(1, **options)
    results = [kept(source, request) for request in REQUESTS]
    gc.collect()
    assert results == [imgsvc.process(source, request).data for request in REQUESTS]


@pytest.mark.parametrize("progressive", [False, True])
def test_a_source_is_decoded_once(decoded: list[str], progressive: bool) -> None:
    source = photo(2, progressive=progressive)
    for exposure in (10, 20, 30):
        kept(source, {"adjust": {"exposure": exposure}})
    assert decoded == ["jpg"]


def test_another_file_of_the_same_size_is_another_source() -> None:
    one, other = photo(3, format="BMP"), photo(4, format="BMP")
    assert len(one) == len(other)
    request = {"output": {"format": "png"}}
    assert kept(one, request) != kept(other, request)
    assert kept(other, request) == imgsvc.process(other, request).data


def test_nothing_is_kept_for_work_of_other_kinds(decoded: list[str]) -> None:
    source = photo(5)
    kept(source, {"adjust": {"exposure": 10}})
    imgsvc.process(source, {"adjust": {"exposure": 10}}, io.BytesIO())
    assert decoded == ["jpg", "jpg"]


@pytest.mark.parametrize(("side", "times"), [(3464, 1), (4100, 2)])
def test_photographs_of_12_megapixels_are_kept_and_larger_ones_are_not(
    side: int, times: int, decoded: list[str]
) -> None:
    source = photo(6, side=side)
    for width in (3000, 2990):
        kept(source, {"resize": {"width": width}, "output": {"format": "jpg", "quality": 30}})
    assert decoded == ["jpg"] * times


def test_pixels_are_not_kept_beyond_the_limit_of_memory(decoded: list[str]) -> None:
    source, request = photo(7, side=1000), {"adjust": {"exposure": 10}}
    limits = imgsvc.Limits(memory_bytes=least_memory(source, request))
    decoded.clear()
    for _ in range(2):
        kept(source, request, limits=limits)
    assert decoded == ["jpg", "jpg"]


def test_kept_pixels_go_when_other_work_needs_the_memory(decoded: list[str]) -> None:
    source, other, request = photo(8), photo(9), {"adjust": {"exposure": 10}}
    limits = imgsvc.Limits(memory_bytes=least_memory(other, request))
    decoded.clear()
    kept(source, request)
    imgsvc.process(other, request, io.BytesIO())
    kept(source, request)
    assert decoded == ["jpg", "jpg"]
    imgsvc.process(other, request, io.BytesIO(), limits=limits)
    kept(source, request)
    assert decoded == ["jpg"] * 4


def least_memory(source: bytes, request: dict[str, Any]) -> int:
    """Return the smallest limit of memory with which a request is done."""
    low, high = 0, 1 << 30
    while high - low > 1:
        middle = (low + high) // 2
        try:
            imgsvc.process(source, request, io.BytesIO(), limits=imgsvc.Limits(memory_bytes=middle))
        except imgsvc.LimitExceeded:
            low = middle
        else:
            high = middle
    return high


def test_a_damaged_file_is_refused_each_time() -> None:
    source = photo(8)[:-3000]
    for _ in range(2):
        with pytest.raises(imgsvc.CorruptImage):
            kept(source, {"adjust": {"exposure": 10}})
