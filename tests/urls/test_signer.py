"""URLs and HTML as a program writes them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import attrs
import pytest

from imgsvc_core import ImageInfo, Spec, SpecError, explain, inspect
from imgsvc_core.plan.steps import Resample
from imgsvc_core.spec import params, unparse
from imgsvc_core.spec.options import OPTIONS
from imgsvc_urls import Delivery, Signer, UrlSource, parse, verify
from tests.support import encoded

SECRETS = {"k1": "a secret of a signing key"}
SIGNED = Signer("https://img.example.org", "k1", SECRETS["k1"])
PLAIN = Signer("")
START = "/1.0/image/unsigned"


def read(url: str) -> Any:
    return parse(verify(url.removeprefix("https://img.example.org/1.0/image"), SECRETS))


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"resize": "800x600", "mode": "fit", "gravity": "face"}, "resize:800x600/gravity:face/mode:fit"),
        ({"sepia": 60, "quality": 70.0, "lossless": None}, "sepia:60/quality:70"),
        ({"resize_background": "#f80", "resize": "8x6", "mode": "fill"},
         "resize:8x6/mode:fill/resize-background:FF8800"),
        ({"rotate": 12.5, "flip_vertical": True, "download": True}, "flip-vertical:1/rotate:12.5/download:1"),
        ({"watermark": "a/b c,d", "dpr": 2, "version": "ä"}, "watermark:a%2Fb%20c%2Cd/dpr:2/version:%C3%A4"),
        ({"preset": ["card", "wide"], "resize": "8x"}, "preset:card/preset:wide/resize:8x"),
        ({"preset": "card", "gravity": "top"}, "preset:card/resize-gravity:top"),
        ({"expires": datetime(2030, 1, 1, tzinfo=UTC)}, "expires:1893456000"),
        ({"expires": datetime(2030, 1, 1, 0, 0, 0, 900_000, UTC)}, "expires:1893456000"),
    ],
)  # fmt: skip
def test_paths(options: dict[str, Any], path: str) -> None:
    assert PLAIN.url("photos/a b.jpg", **options) == f"{START}/{path}/photos/a%20b.jpg"


def test_options_win_over_the_request() -> None:
    spec = Spec(resize={"width": 8}, output={"quality": 50})
    expected = f"{START}/resize:8x/quality:70/photos/a"
    assert (
        PLAIN.url("photos/a", spec, quality=70)
        == PLAIN.url("photos/a", unparse(spec), quality=70)
        == expected
    )


def test_sources_are_urls_or_below_origins() -> None:
    url = "https://example.org/a,b.jpg?c=d&e"
    assert PLAIN.url(url) == f"{START}/plain/https%3A%2F%2Fexample.org%2Fa%2Cb.jpg%3Fc%3Dd%26e"
    assert Signer("", in_base64=True).url(url) == f"{START}/b64/aHR0cHM6Ly9leGFtcGxlLm9yZy9hLGIuanBnP2M9ZCZl"
    assert read(SIGNED.url("github:octocat")).source == UrlSource("github:octocat")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PLAIN.url("photos/a", resise="8x"), "There is no option 'resise'; did you mean 'resize'?"),
        (lambda: PLAIN.url("photos/a", quality=0), "'quality' parameter must be integer within 1 to 100"),
        (lambda: PLAIN.url("photos/a", {"resise": {}}), "'resise' parameter; did you mean 'resize'?"),
        (lambda: PLAIN.url("photos/a", preset="Card"), "The name of a preset must be 1 to 63 lower-case"),
        (lambda: PLAIN.url("photos/a", {"resize": {"with": 1}}, preset="a"), "did you mean 'width'?"),
        (lambda: PLAIN.url("a.jpg"), "must be a URL, or the name of an origin and a path"),
        (lambda: PLAIN.url("photos/../a.jpg"), "must be a path below the origin 'photos'"),
        (lambda: PLAIN.url("photos/\ud800"), "must be a path below the origin 'photos'"),
        (lambda: PLAIN.url("photos/a", watermark="\ud800"), "Option 'watermark' must be Unicode text"),
        (lambda: PLAIN.url("photos/a", expires=datetime(2030, 1, 1)), "must be a time with a time zone"),
        (
            lambda: PLAIN.url(
                "photos/a", {"filter": [{"sepia": {"value": 1}}, {"isolate": {"color": "f00"}}]}
            ),
            "Filter options are applied in the order isolate, monochrome, sepia",
        ),
        (lambda: PLAIN.srcset("photos/a", widths=[0]), "'width' parameter must be integer within 1 to 65535"),
        (
            lambda: PLAIN.srcset("photos/a", resize="80x", widths=[0]),
            "must be integer within 1 to 65535 range",
        ),
        (lambda: PLAIN.srcset("photos/a", resize="80x", widths=[-5]), "within 1 to 65535 range, got -5"),
        (lambda: PLAIN.srcset("photos/a", preset="a", widths=[0]), "must be integer within 1 to 65535 range"),
        (lambda: PLAIN.srcset("photos/a", densities=[9]), "'dpr' parameter must be float within 0.1 to 5"),
        (lambda: PLAIN.picture("photos/a", alt="", formats=["bmp"]), "The formats must be some of jpg"),
        (lambda: PLAIN.picture("photos/a", alt="", formats=[]), "The formats must be some of jpg"),
        (lambda: PLAIN.picture("photos/a", alt="", formats=["auto", "jpg"]), "The formats must be some of"),
        (lambda: Signer("img.example.org"), "must be a URL such as https://img.example.org"),
        (lambda: Signer("https://img.example.org/?a"), "must be a URL such as https://img.example.org"),
        (lambda: Signer("", "k1"), "must have both an id and a secret"),
        (lambda: Signer("", "k.1", SECRETS["k1"]), "must be up to 64 letters, digits, - and _"),
    ],
)
def test_mistakes_are_told(make: Any, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    assert words in caught.value.message
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("name", sorted({*OPTIONS, *params(Delivery), "preset", "plain", "b64"}))
def test_no_origin_has_a_name_that_means_something_else(name: str) -> None:
    with pytest.raises(SpecError, match="names of origins are lower case, and not those of options"):
        PLAIN.url(f"{name}/a.jpg")


def test_srcset_multiplies_all_sizes_with_the_width() -> None:
    crop = {"crop": {"width": 9, "height": 9}}
    srcset = PLAIN.srcset("photos/a", crop, resize="300x200", mode="fit", border=2)
    assert srcset == ", ".join(
        f"{START}/crop-width:9/crop-height:9/{size}/photos/a {width}w"
        for size, width in (
            ("resize:316x211/mode:fit/resize-upscale:0/border:2", 320),
            ("resize:632x421/mode:fit/resize-upscale:0/border:4", 640),
            ("resize:1264x842/mode:fit/resize-upscale:0/border:8", 1280),
        )
    )


def test_srcset_of_densities_and_of_presets() -> None:
    assert PLAIN.srcset("photos/a", resize="80x", densities=(1, 1.5)) == (
        f"{START}/resize:80x/resize-upscale:0/photos/a 1x, "
        f"{START}/resize:80x/resize-upscale:0/dpr:1.5/photos/a 1.5x"
    )
    assert PLAIN.srcset("photos/a", preset="card", widths=[80]) == (
        f"{START}/preset:card/resize:80x/resize-upscale:0/photos/a 80w"
    )
    expected = f"{START}/resize:80x/resize-upscale:0/photos/a 80w"
    assert PLAIN.srcset("photos/a", widths=[80]) == expected
    assert PLAIN.srcset("photos/a", widths=[80], dpr=2) == expected, "which is 80 pixels wide"


@pytest.mark.parametrize("base", [1, 3, 7, 333, 65_535])
def test_every_width_of_a_srcset_is_exact(base: int) -> None:
    widths = [*range(1, 2000, 7), 65_535]
    found = PLAIN.srcset("photos/a", resize=f"{base}x", widths=widths)
    assert re.findall(r"resize:(\d+)x/resize-upscale:0/photos/a (\d+)w", found) == [
        (str(width),) * 2 for width in widths
    ]


@pytest.mark.parametrize(
    "document",
    [
        {"border": {"size": 10}},
        {"resize": {"width": 400}, "border": {"size": 7, "radius": 20}},
        {"resize": {"width": 400, "height": 300, "mode": "fit"}, "padding": {"size": 5, "left": 40}},
        {"resize": {"width": 400}, "scale": {"size": 1.7}, "padding": {"size": 9}, "border": {"size": 3}},
        {"scale": {"size": 0.5, "ratio": 2}},
        {"resize": {"width": 200}, "canvas": {"width": 500, "height": 500}, "border": {"size": 1}},
        {"canvas": {"width": 2000}, "padding": {"size": 3}},
    ],
)
def test_results_have_the_widths_of_a_srcset(document: dict[str, Any]) -> None:
    source = attrs.evolve(inspect(encoded.png().data), width=9000, height=9000)
    for candidate in SIGNED.srcset("photos/a", document, widths=(77, 320, 1281)).split(", "):
        url, _, described = candidate.rpartition(" ")
        assert explain(read(url).spec(), source).size.width == int(described.removesuffix("w"))


@pytest.mark.parametrize("document", [{}, {"resize": {"width": 400}}])
def test_results_of_a_srcset_have_the_ratio_of_the_request(document: dict[str, Any]) -> None:
    source = attrs.evolve(inspect(encoded.png().data), width=900, height=700)
    document = {**document, "scale": {"size": 0.5, "ratio": 2}}
    for candidate in SIGNED.srcset("photos/a", document, widths=(77, 320)).split(", "):
        url, _, described = candidate.rpartition(" ")
        width = int(described.removesuffix("w"))
        assert explain(read(url).spec(), source).size == (width, 2 * width)


def test_a_width_without_room_for_the_border_is_refused() -> None:
    with pytest.raises(SpecError, match="border of 320 pixels leave no room in a width of 320"):
        PLAIN.srcset("photos/a", border=160)


class Tags(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_picture_offers_formats_and_sizes() -> None:
    alt = 'Shoes, "red" & <new>'
    page = SIGNED.picture(
        "photos/a", resize="300x", widths=(300, 600), sizes="50vw", alt=alt, attributes={"loading": "lazy"}
    )
    (_, picture), *sources, (name, image) = Tags(page).found
    assert picture == {}
    assert [item["type"] for _, item in sources] == ["image/avif", "image/webp"]
    for item, format in zip([*(item for _, item in sources), image], ("avif", "webp", "jpg"), strict=True):
        urls = [candidate.split(" ") for candidate in (item["srcset"] or "").split(", ")]
        assert [size for _, size in urls] == ["300w", "600w"]
        assert [read(url).spec() for url, _ in urls] == [
            Spec(resize={"width": width, "upscale": False}, output={"format": format}) for width in (300, 600)
        ]
        assert item["sizes"] == "50vw"
    assert name == "img"
    assert (image["alt"], image["loading"]) == (alt, "lazy")
    expected = Spec(resize={"width": 600, "upscale": False}, output={"format": "jpg"})
    assert read(str(image["src"])).spec() == expected


def test_picture_of_densities_has_no_sizes() -> None:
    page = PLAIN.picture("photos/a", resize="80x", densities=(1, 2), formats=["webp"], alt="")
    ((_, _), (_, image)) = Tags(page).found
    assert "sizes" not in image
    assert image["src"] == f"{START}/resize:80x/resize-upscale:0/format:webp/dpr:2/photos/a"


def _photo(width: int, height: int, **more: Any) -> ImageInfo:
    return ImageInfo(format="jpg", width=width, height=height, colorspace="srgb", bytes=10_000, **more)


WIDE = _photo(1000, 300)


@pytest.mark.parametrize("source", [None, _photo(400, 300)])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 0, -1, 5.1])
def test_densities_are_checked_whatever_is_known_of_the_source(
    source: ImageInfo | None, wrong: float
) -> None:
    with pytest.raises(SpecError, match="'dpr' parameter must be float within"):
        PLAIN.srcset("photos/a", resize="80x", densities=[1, wrong], info=source)


@pytest.mark.parametrize("source", [None, _photo(400, 300)])
@pytest.mark.parametrize("name", ["widths", "densities"])
def test_some_size_must_be_given(source: ImageInfo | None, name: str) -> None:
    with pytest.raises(SpecError, match=f"The {name} must be one or more numbers, got none"):
        PLAIN.picture("photos/a", alt="", info=source, **{name: []})


@pytest.mark.parametrize(
    ("request_", "source", "widths", "size"),
    [
        ({}, _photo(400, 300), (320, 400), (400, 300)),
        ({}, _photo(639, 300), (320, 639), (639, 300)),
        ({}, _photo(300, 400, orientation=6), (320, 400), (400, 300)),
        ({}, _photo(5000, 3000), (320, 640, 1280), (5000, 3000)),
        ({}, _photo(200, 100), (200,), (200, 100)),
        ({"resize": {"width": 300}}, _photo(400, 300), (320, 400), (300, 225)),
        ({"resize": {"width": 800}}, _photo(400, 300), (320, 400), (400, 300)),
        ({"resize": {"width": 800, "upscale": False}}, _photo(400, 300), (320, 400), (400, 300)),
        ({"resize": {"width": 160, "height": 90, "mode": "fit"}}, WIDE, (320, 534), (160, 90)),
        ({"resize": {"width": 160, "height": 90, "mode": "fill"}}, WIDE, (320, 640, 1000), (160, 90)),
        ({"resize": {"width": 160, "height": 90, "mode": "stretch"}}, WIDE, (320, 534), (160, 90)),
        ({"crop": {"width": 500, "height": 250}}, _photo(4000, 3000), (320, 500), (500, 250)),
        ({"rotate": {"angle": 90}}, _photo(4000, 600), (320, 600), (600, 4000)),
        ({"border": {"size": 10}}, _photo(400, 300), (320, 420), (420, 320)),
        ({"resize": {"width": 160, "height": 90, "mode": "fit"}}, None, (320, 640, 1280), (160, 90)),
        ({"crop": {"width": 80, "height": 60}}, None, (320, 640, 1280), (80, 60)),
        ({"resize": {"width": 160}}, None, (320, 640, 1280), None),
        ({"trim": {"threshold": 9}}, _photo(400, 300), (320, 400), None),
        ({}, None, (320, 640, 1280), None),
    ],
)  # fmt: skip
def test_pictures_have_their_size_and_enlarge_nothing(
    request_: dict[str, Any], source: ImageInfo | None, widths: tuple[int, ...], size: tuple[int, int] | None
) -> None:
    page = SIGNED.picture("photos/a", request_, alt="", formats=["jpg"], info=source)
    (_, (_, image)) = Tags(page).found
    assert (image.get("width"), image.get("height")) == (
        (None, None) if size is None else tuple(map(str, size))
    )
    candidates = [candidate.rpartition(" ") for candidate in str(image["srcset"]).split(", ")]
    assert [described for _, _, described in candidates] == [f"{width}w" for width in widths]
    assert image["src"] == candidates[-1][0]
    if source is None or "trim" in request_:
        return
    for url, _, described in candidates:
        plan = explain(read(url).spec(), source)
        assert plan.size.width == int(described.removesuffix("w"))
        assert not any(step.after > step.before for step in plan.steps if isinstance(step.step, Resample)), (
            described
        )


def test_no_picture_is_larger_than_a_source_of_unknown_size() -> None:
    source = _photo(400, 300)
    for document in ({}, {"resize": {"width": 200, "upscale": True}}, {"scale": {"size": 3}}):
        for candidate in SIGNED.srcset("photos/a", document).split(", "):
            assert explain(read(candidate.rpartition(" ")[0]).spec(), source).size <= (400, 300)


def test_densities_that_enlarge_end_with_the_largest_that_does_not() -> None:
    def described(**options: Any) -> list[str]:
        found = PLAIN.srcset("photos/a", densities=(1, 2, 3), info=_photo(400, 300), **options)
        return [candidate.rpartition(" ")[2] for candidate in found.split(", ")]

    assert described(resize="100x") == ["1x", "2x", "3x"]
    assert described(resize="160x120", mode="fit") == ["1x", "2x", "2.5x"]
    assert described(resize="500x") == ["1x"]
    assert described(resize="250x", scale=2) == ["1x"]
    assert described() == ["1x", "2x", "3x"], "without a size, density changes nothing"
    tiny = PLAIN.srcset("photos/a", densities=(1, 2), info=_photo(3, 3), resize="5000x")
    assert tiny.endswith("/photos/a 1x"), "a hundredth of the size is more than the source has"


@pytest.mark.parametrize("mode", ["auto", "fit", "fill", "stretch"])
@pytest.mark.parametrize("densities", [(1, 2), (2,), (2, 1)])
def test_a_source_that_suffices_for_no_density_is_delivered_in_its_own_size(
    mode: str, densities: tuple[int, ...]
) -> None:
    source = _photo(400, 400)
    page = SIGNED.picture(
        "photos/a", resize="600x600", mode=mode, densities=densities, formats=["jpg"], alt="", info=source
    )
    ((_, _), (_, image)) = Tags(page).found
    candidate, descriptor = str(image["srcset"]).split(" ")
    assert descriptor == "1x"
    assert explain(read(candidate).spec(), source).size == (400, 400)
    assert (image["width"], image["height"]) == ("400", "400")


@pytest.mark.parametrize(
    "options", [{"scale": 2}, {"resize": "250x", "scale": 2}, {"resize": "100x", "scale": 3}]
)
@pytest.mark.parametrize("source", [_photo(400, 300), None])
def test_no_density_makes_scale_enlarge(options: dict[str, Any], source: ImageInfo | None) -> None:
    srcset = SIGNED.srcset("photos/a", densities=(1, 2, 3), info=source, **options)
    for candidate in srcset.split(", "):
        plan = explain(read(candidate.rpartition(" ")[0]).spec(), _photo(400, 300))
        assert plan.size <= (400, 300)


def test_presets_may_do_anything_so_sizes_are_not_written() -> None:
    page = PLAIN.picture("photos/a", preset="card", alt="", formats=["jpg"], info=_photo(400, 300))
    ((_, _), (_, image)) = Tags(page).found
    assert "width" not in image
    assert re.findall(r" (\d+)w", str(image["srcset"])) == ["320", "400"]
