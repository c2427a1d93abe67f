"""Curves of bytes against look: each point is a file that the library makes, scored as `compare` does."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.limits import Limits
from imgsvc_core.similarity import curve as module
from imgsvc_core.similarity.curve import Point, curve, point_as_asked
from tests.support import encoded
from tests.support.photos import Pixels, astronaut, coffee, cut_out, rocket

PHOTO = coffee()[100:260, 100:300]


def png(pixels: Pixels) -> bytes:
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return data.getvalue()


def points(source: bytes, request: dict[str, Any], looks: list[float]) -> tuple[Point, ...]:
    return curve(source, imgsvc.parse(request), looks=looks)[0]


def as_asked(source: bytes, request: dict[str, Any]) -> Point:
    (point,), _ = point_as_asked(source, imgsvc.parse(request))
    return point


def exactly(source: bytes, request: dict[str, Any]) -> bytes:
    return imgsvc.process(source, {**request, "output": {"format": "png", "flatten": True}}).data


@pytest.mark.parametrize("format", ["jpg", "webp", "avif", "heic", "jp2"])
def test_points_are_files_of_the_library_with_their_look(format: str) -> None:
    source, request = png(PHOTO), {"resize": {"width": 120}, "adjust": {"exposure": 20}}
    found = points(source, {**request, "output": {"format": format}}, [70, 50, 85])
    assert len(found) >= 2
    reference = exactly(source, request)
    for point in found:
        output = {"format": format, "quality": point.quality}
        made = imgsvc.process(source, {**request, "output": output}).data
        assert point.bytes == len(made)
        assert point.look == pytest.approx(imgsvc.compare(reference, made).ssimulacra2, abs=0.2)
        assert point.encode > 0


@pytest.mark.parametrize("format", ["jpg", "webp"])
@pytest.mark.parametrize("number", [0, 1], ids=["worse", "better"])
def test_a_point_tells_where_the_next_ones_are(number: int, format: str) -> None:
    """These pictures look far worse, and far better, than is typical for a quality."""
    source = png((rocket()[100:300, 200:400], np.ascontiguousarray(astronaut()[:250, :250, 1]))[number])
    request, looks = {"output": {"format": format}}, [70.0, 55.0, 85.0]
    together = points(source, request, looks)
    apart = [points(source, request, [look])[0] for look in looks]
    assert together[0].quality == apart[0].quality

    def missed(found: Sequence[Point]) -> float:
        return sum(abs(float(point.look or 0) - look) for point, look in zip(found, looks, strict=True))

    assert missed(together) < missed(apart) - 2
    assert len({point.quality for point in together}) == len(together)


def test_what_the_request_promises_does_not_matter() -> None:
    source = png(PHOTO)
    usual = points(source, {"output": {"format": "webp"}}, [70, 50])
    for promise in ({"quality": 20}, {"look": 90}, {"lossless": True}, {"max_bytes": 200}):
        found = points(source, {"output": {"format": "webp", **promise}}, [70, 50])
        assert [(one.bytes, one.look) for one in found] == [(one.bytes, one.look) for one in usual]


@pytest.mark.parametrize("output", [{"quality": 30}, {"look": 60}, {}])
def test_the_file_as_asked_is_that_of_the_request(output: dict[str, Any]) -> None:
    source, request = png(PHOTO), {"output": {"format": "jpg", **output}}
    point, made = as_asked(source, request), imgsvc.process(source, request)
    assert (point.bytes, point.quality) == (len(made.data), made.output.quality)
    assert point.look == pytest.approx(imgsvc.compare(source, made.data).ssimulacra2, abs=0.2)


@pytest.mark.parametrize("output", [{"format": "png"}, {"format": "webp", "lossless": True}])
def test_what_keeps_every_pixel_looks_the_same(output: dict[str, Any]) -> None:
    point = as_asked(png(PHOTO), {"output": output})
    assert (point.look, point.quality) == (100, None)


@pytest.mark.parametrize("way", ["keep_pixels", "if_smaller"])
def test_pixels_that_stay_look_the_same(way: str) -> None:
    """Encoded again, they would not: the file is small for what it shows."""
    source = imgsvc.process(PHOTO, {"output": {"format": "jpg", "quality": 20}}).data
    assert as_asked(source, {"output": {"format": "jpg", way: True}}).look == 100


def test_a_palette_does_not_look_the_same() -> None:
    assert (as_asked(png(PHOTO), {"output": {"format": "png", "colors": 8}}).look or 100) < 90
    assert (as_asked(png(PHOTO), {"output": {"format": "gif"}}).look or 100) < 99


def test_transparent_pictures_are_scored_on_the_ground_that_they_lose_it_for() -> None:
    source = png(cut_out()[::4, ::4])
    (jpg,), notes = point_as_asked(source, imgsvc.parse({"output": {"format": "jpg", "quality": 95}}))
    assert jpg.look is not None
    assert jpg.look > 80
    assert "no transparency" in notes[0]
    assert "no transparency" in curve(source, imgsvc.parse({"output": {"format": "jpg"}}), looks=[70])[1][0]
    assert curve(source, imgsvc.parse({"output": {"format": "webp"}}), looks=[70])[1] == ()


def test_animations_count_with_their_worst_frame() -> None:
    source = encoded.gif_animated().data
    (point,) = points(source, {"output": {"format": "webp"}}, [60])
    made = imgsvc.process(source, {"output": {"format": "webp", "quality": point.quality}}).data
    frames = encoded.gif_animated().pixels.shape[0]
    assert imgsvc.inspect(made).frames == frames > 1
    assert point.bytes == len(made)
    assert point.look is not None
    assert point.look <= imgsvc.compare(source, made).ssimulacra2 + 0.2


@pytest.mark.parametrize("output", [{"format": "png"}, {"format": "gif"}, {"format": "auto"}, None])
def test_a_curve_is_of_one_format_with_a_quality(output: dict[str, Any] | None) -> None:
    with pytest.raises(imgsvc.UnsupportedOperation, match="one format that has a quality"):
        points(png(PHOTO), {} if output is None else {"output": output}, [70])


def test_too_many_pixels_have_a_size_but_neither_look_nor_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SCORED", PHOTO.shape[0] * PHOTO.shape[1] - 1)
    point = as_asked(png(PHOTO), {"output": {"format": "jpg"}})
    assert point.look is None
    assert point.bytes > 0
    with pytest.raises(imgsvc.UnsupportedOperation, match=r"at most .* megapixels in all frames"):
        points(png(PHOTO), {"output": {"format": "jpg"}}, [70])


@pytest.mark.parametrize("format", ["jpg", "webp"])
def test_looks_of_one_quality_have_one_point(format: str) -> None:
    found = points(png(PHOTO), {"output": {"format": format}}, [99, 99, 70, 70, 70, 98, 99])
    qualities = [point.quality for point in found]
    assert 2 <= len(qualities) == len(set(qualities)) < 7


def test_pixels_of_all_frames_count(monkeypatch: pytest.MonkeyPatch) -> None:
    source, request = encoded.encoded("webp_animated").data, {"output": {"format": "webp"}}
    info = imgsvc.inspect(source)
    monkeypatch.setattr(module, "_MOST_SCORED", info.width * info.height * info.frames - 1)
    assert as_asked(source, request).look is None
    with pytest.raises(imgsvc.UnsupportedOperation, match="in all frames"):
        points(source, request, [70])


def test_the_time_limit_holds() -> None:
    spec = imgsvc.parse({"output": {"format": "jpg"}})
    with pytest.raises(imgsvc.TimeLimitExceeded):
        curve(png(PHOTO), spec, looks=[70, 50, 85], limits=Limits(seconds=1e-4))


def test_every_format_with_a_quality_has_typical_looks() -> None:
    rows = [row for row in FORMATS.values() if row.writable and row.quality is not None]
    assert all(list(row.looks) == sorted(row.looks) for row in rows)
