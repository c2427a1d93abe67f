"""URLs of next/image do here what they do in Next.js; most cases are those of its image-optimizer tests."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import attrs
import pytest

from imgsvc_urls import OriginSource, UrlSource
from imgsvc_urls.dialects import ForeignRequest, ForeignUrl
from imgsvc_urls.dialects.ipx import Ipx
from imgsvc_urls.errors import DialectError
from tests.dialects.pictures import PHOTO, facts, output, planned_size

CHROME = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"


def url(query: str, accept: str = CHROME, **settings: Any) -> ForeignUrl:
    dialect = Ipx(base_url="site/", **settings)
    return dialect.parse(ForeignRequest(f"/_next/image?{query}", {"Accept": accept}))


def asking(width: int = 640, quality: int = 75, source: str = "/a.jpg") -> str:
    return f"url={quote(source, safe='')}&w={width}&q={quality}"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("w=64&q=75", "'url' is required"),
        ("url=&w=64&q=75", "'url' is required"),
        ("url=%2Fa.jpg&q=75", "'w' is required"),
        ("url=%2Fa.jpg&w=64", "'q' is required"),
        ("url=%2Fa.jpg&w=64&q=", "'q' is required"),
        ("url=%2Fa.jpg&url=%2Fb.jpg&w=64&q=75", "'url' must be given once"),
        ("url=%2Fa.jpg&w=64&w=128&q=75", "'w' must be given once"),
        ("url=%2Fa.jpg&w=64&q=75&q=80", "'q' must be given once"),
        ("url=%2Fa.jpg&w=0&q=75", "'w' must be an integer greater than 0"),
        ("url=%2Fa.jpg&w=foo&q=75", "'w' must be an integer greater than 0"),
        ("url=%2Fa.jpg&w=64.5&q=75", "'w' must be an integer greater than 0"),
        ("url=%2Fa.jpg&w=-64&q=75", "'w' must be an integer greater than 0"),
        ("url=%2Fa.jpg&w=1000&q=75", "'w' must be one of 16, 32"),
        ("url=%2Fa.jpg&w=64&q=0", "'q' must be an integer greater than 0"),
        ("url=%2Fa.jpg&w=64&q=101", "'q' must be one of"),
        ("url=%2Fa.jpg&w=64&q=3.14", "'q' must be an integer"),
        ("url=%2F%2Fexample.com%2Fa.jpg&w=64&q=75", "'url' must have a scheme"),
        ("url=%2F_next%2Fimage%3Furl%3Dtest.jpg%26w%3D1%26q%3D1&w=64&q=75", "'url' must not be"),
        ("url=%2F%2Fdocs%2F_next%2Fimage%2F&w=64&q=75", "'url' must have a scheme"),
        ("url=%2Fdocs%2F_next%252Fimage&w=64&q=75", "'url' must not be"),
        ("url=a.jpg&w=64&q=75", "'url' must be a path or a URL"),
        ("url=javascript%3Aalert(1)&w=64&q=75", "'url' must be a path or a URL"),
        ("url=file%3A%2F%2F%2Fetc%2Fpasswd&w=64&q=75", "'url' must be a path or a URL"),
        (f"url=%2F{'a' * 3072}.jpg&w=64&q=75", "at most 3072 characters"),
        ("url=%2F..%2Fa.jpg&w=64&q=75", "a path below the origin 'site'"),
    ],
)
def test_wrong_parameters_are_named(query: str, told: str) -> None:
    with pytest.raises(DialectError) as caught:
        url(query)
    assert (told in caught.value.message, caught.value.status) == (True, 400), caught.value.message


def test_sources() -> None:
    assert url(asking(source="/nested/a b.jpg?v=2")).source == OriginSource("site", "nested/a b.jpg")
    found = url(asking(source="https://pics.example/a.jpg?v=2&x=y"))
    assert found.source == UrlSource("https://pics.example/a.jpg?v=2&x=y")
    remote = Ipx(base_url="https://site.example/").parse(ForeignRequest(f"/_next/image/?{asking()}"))
    assert remote.source == UrlSource("https://site.example/a.jpg")


def test_the_widths_of_an_unchanged_configuration() -> None:
    image_sizes = (16, 32, 48, 64, 96, 128, 256, 384)
    for width in (*image_sizes, 640, 750, 828, 1080, 1200, 1920, 2048, 3840):
        assert planned_size(url(asking(width)))[0] == min(width, 2725)


def test_pictures_are_never_enlarged() -> None:
    assert url(asking(640)).upright
    assert planned_size(url(asking(640))) == (640, 523)
    assert planned_size(url(asking(3840))) == (2725, 2225)


@pytest.mark.parametrize(
    ("formats", "accept", "source", "expected"),
    [
        (["webp"], CHROME, "jpg", {"format": "webp", "quality": 75}),
        (["avif", "webp"], CHROME, "png", {"format": "avif", "quality": 55, "subsampling": "444"}),
        (["avif", "webp"], "image/webp,*/*", "png", {"format": "webp", "quality": 75}),
        (["avif", "webp"], "image/avif;q=0.8,image/webp", "png", {"format": "webp"}),
        (["avif"], "image/webp,*/*", "png", {"format": "png", "colors": 256}),
        (["webp"], "*/*", "jpg", {"format": "jpg", "quality": 75}),
        (["webp"], "image/webp;q=0", "webp", {"format": "jpg"}),
        ([], CHROME, "avif", {"format": "jpg"}),
        ([], CHROME, "tiff", {"format": "jpg"}),
    ],
)
def test_formats(formats: list[str], accept: str, source: str, expected: dict[str, object]) -> None:
    found = output(url(asking(), accept, formats=formats), facts(source, 1000, 800))
    assert {name: found.get(name) for name in expected} == expected


def test_a_low_quality_of_avif() -> None:
    assert output(url(asking(quality=5), formats=["avif"]))["quality"] == 1


def test_answers_vary_with_accept() -> None:
    request = ForeignRequest(f"/_next/image?{asking()}", {"Accept": CHROME})
    key = Ipx(base_url="site/").parse(request).key
    assert request.used_headers == ("Accept",)
    assert key != url(asking(), "image/png").key
    assert key == url(asking(source="/b.jpg")).key
    assert key != url(asking(750)).key


def test_what_is_passed_on_unchanged() -> None:
    for info in (attrs.evolve(PHOTO, format="gif", frames=3), facts("bmp", 9, 9), facts("ico", 9, 9)):
        assert url(asking()).spec(info) is None
    with pytest.raises(DialectError, match="SVG"):
        url(asking()).spec(facts("svg", 100, 100))


def test_allowed_widths_and_qualities() -> None:
    settings = {"widths": [100], "qualities": [50]}
    assert url(asking(100, 50), **settings)
    for width, quality in ((640, 50), (100, 75)):
        with pytest.raises(DialectError, match="must be one of"):
            url(asking(width, quality), **settings)
