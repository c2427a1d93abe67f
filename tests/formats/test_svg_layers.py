"""What librsvg draws apart counts before anything is drawn: nested groups, patterns, inlined pictures."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

import imgsvc_core as imgsvc
from imgsvc_core.formats.svg.dashes import dash_bytes, outline
from tests.support.photos import photo

GROUPS = 100
PICTURE = photo("coffee")


def drawing(content: str, side: int = 2500) -> bytes:
    start = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'{start} width="{side}" height="{side}">{content}</svg>'.encode()


def nested(tag: str) -> str:
    return tag * GROUPS + '<rect width="9000" height="9000"/>' + "</g>" * GROUPS


def chained(first: str, element: str) -> str:
    """Return elements of which each refers to the one before."""
    return first + "".join(element.format(id=f"e{n}", before=f"e{n - 1}") for n in range(1, GROUPS))


@pytest.mark.parametrize(
    "content",
    [
        nested('<g opacity=".9">'),
        nested('<g style="isolation: isolate">'),
        nested('<g style="color:red; OPACIT\\59 : /**/ .5">'),
        nested('<g style="mix-blend-mode:multiply">'),
        '<mask id="m"><rect width="9" height="9"/></mask>' + nested('<g mask="url(#m)">'),
        '<clipPath id="c" clipPathUnits="objectBoundingBox"/>' + nested('<g clip-path="url(#c)">'),
        '<filter id="f"/>' + nested('<g style="filter:url(#f)">'),
        nested('<g id="a" opacity=".9">'),
        nested('<g class="a b">') + "<style>g rect, .b { opacity: .5 }</style>",
        "<style><![CDATA[@media all { * { isolation: isolate } }]]></style>" + nested("<g>"),
        '<filter id="f">' + '<feFlood result="{}"/>' * 2 * GROUPS + '</filter><g filter="url(#f)"/>',
        chained(
            '<g id="e0"/>', '<g id="{id}"><use opacity=".5" xlink:href="#{before}"/></g>'
        ) + '<use href="#e99"/>',
        chained(
            '<mask id="e0"/>', '<mask id="{id}"><rect width="9" height="9" mask="url(#{before})"/></mask>'
        ) + '<rect mask="url(#e99)"/>',
        '<g id="a"><use href="#a"/></g>',
        '<style>@import url("data:text/css,g{opacity:.5}")</style>',
    ],
    ids=["opacity", "isolation", "escape", "blend", "mask", "clip", "filter", "same id", "class", "all",
         "results", "use", "masks", "cycle", "import"],
)  # fmt: skip
def test_deeply_nested_layers_are_refused_by_their_memory(content: str) -> None:
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.process(drawing(content), {"output": {"format": "png"}})


@pytest.mark.parametrize(
    ("content", "layers"),
    [
        ('<rect opacity=".5" width="9" height="9"/>' * 500, 1),
        ('<g fill-opacity=".5" opacity="1" style="stroke-opacity:.5;filter:none">' * 9 + "</g>" * 9, 0),
        ('<linearGradient id="a"/><g><g><rect fill="url(#a)" width="9" height="9"/></g></g>' * 500, 0),
        ("<style>.a{opacity:.5} .b{opacity: 1}</style>" + '<g class="b"><a class="a"/></g>' * 9, 1),
        ('<clipPath id="c"/><g clip-path="url(#c)"><g opacity=".5"><path/></g></g>' * 200, 1),
        ('<pattern id="p" width="9" height="9" patternUnits="userSpaceOnUse"/><rect fill="url(#p)"/>' * 9, 1),
        (
            '<pattern id="p" width="1" height="1"><image/></pattern>'
            '<rect width="9" height="9" fill="url(#p)"/><path d="M0 0L1000 1000H0z" fill="url(#p)"/>',
            1,
        ),
    ],
    ids=["siblings", "neutral", "gradients", "classes", "clips", "small patterns", "boxed patterns"],
)  # fmt: skip
def test_ordinary_drawings_need_few_layers(content: str, layers: int) -> None:
    info = imgsvc.inspect(drawing(content, 4000))
    assert info.layers == layers
    imgsvc.explain({"output": {"format": "png"}}, info)


def test_layers_of_inlined_drawings_count() -> None:
    inner = base64.b64encode(drawing(nested('<g opacity=".9">'))).decode()
    with pytest.raises(imgsvc.ImageTooLarge, match="inlined in the SVG image"):
        imgsvc.inspect(drawing(f'<image href="data:image/svg+xml;base64,{inner}" width="9" height="9"/>', 20))


IN_USER_UNITS = 'patternUnits="userSpaceOnUse"'
FILLED = '<rect width="100" height="100" fill="url(#p)"/>'


def pattern(attributes: str, content: str = '<rect width="90" height="90"/>', id: str = "p") -> str:
    return f'<pattern id="{id}" {attributes}>{content}</pattern>'


@pytest.mark.parametrize(
    "content",
    [
        pattern(f'width="900" height="900" {IN_USER_UNITS}') + FILLED,
        pattern(f'width="900%" height="900%" {IN_USER_UNITS}') + FILLED,
        pattern(f'width="9" height="9" patternTransform="scale(100)" {IN_USER_UNITS}') + FILLED,
        pattern(f'width="9" height="9" patternTransform="matrix(0 100 -100 0 0 0)" {IN_USER_UNITS}') + FILLED,
        pattern(f'width="9" height="9" {IN_USER_UNITS}') + f'<g transform="scale(100)">{FILLED}</g>',
        pattern(f'width="9" height="9" {IN_USER_UNITS}')
        + f'<style>.a{{transform:scale(100)}}</style><g class="a">{FILLED}</g>',
        pattern(f'width="9" height="9" {IN_USER_UNITS}') + f'<svg viewBox="0 0 1 1">{FILLED}</svg>',
        pattern(f'width="9" height="9" {IN_USER_UNITS}')
        + f'<symbol id="s" viewBox="0 0 1 1">{FILLED}</symbol><use href="#s" width="100" height="100"/>',
        pattern(f'width="9" height="9" {IN_USER_UNITS}')
        + f'<marker id="m" markerWidth="10" markerHeight="10" viewBox="0 0 1 1">{FILLED}</marker>'
        '<path stroke-width="10" marker-start="url(#m)" d="M1 1h9"/>',
        pattern(f'width="900" height="900" {IN_USER_UNITS}', id="q") + pattern('href="#q"', "") + FILLED,
        pattern(f'width="100" height="100" viewBox="0 0 1 1" {IN_USER_UNITS}', FILLED.replace("#p", "#q"))
        + pattern(f'width="9" height="9" {IN_USER_UNITS}', id="q")
        + FILLED,
        pattern('width="9" height="9"') + FILLED,
        pattern('width="1" height="1"') + '<rect style="width:900px;height:900px" fill="url(#p)"/>',
        pattern('width="1" height="1"') + '<path d="M0 0L900 900H0z" fill="url(#p)"/>',
        pattern('width="1" height="1"') + '<path d="m9 9h900v900z" fill="url(#p)"/>',
        pattern('width="1" height="1"') + '<circle r="450" fill="url(#p)"/>',
        pattern('width="1" height="1"') + '<ellipse rx="450" ry="450" fill="url(#p)"/>',
        pattern('width="1" height="1"') + '<polygon points="0 0 900 900 900 0" fill="url(#p)"/>',
        pattern('width="1" height="1"') + '<text font-size="300" fill="url(#p)">nine hundred</text>',
        pattern('width="1" height="1" patternContentUnits="objectBoundingBox"', FILLED.replace("#p", "#q"))
        + pattern(f'width="9" height="9" {IN_USER_UNITS}', id="q")
        + FILLED,
    ],
    ids=["user units", "percent", "scaled", "matrix", "group", "sheet", "view", "symbol", "marker",
         "inherited", "view of a pattern", "boxed", "style", "path", "relative path", "circle", "ellipse",
         "polygon", "text", "boxed content"],
)  # fmt: skip
def test_the_tiles_of_patterns_count(content: str) -> None:
    """Each tile has 900 x 900 pixels, 81 times as many as the drawing, and there may be two."""
    layers = imgsvc.inspect(drawing(content, 100)).layers
    assert layers is not None
    assert layers >= 2 * 81


def test_a_large_tile_is_refused() -> None:
    content = pattern(f'width="20000" height="20000" {IN_USER_UNITS}') + FILLED
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.process(drawing(content, 1000), {"output": {"format": "png"}})


def test_a_resolution_of_filters_is_not_followed() -> None:
    content = '<filter id="f"><feConvolveMatrix kernelUnitLength=".01"/></filter><rect filter="url(#f)"/>'
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.process(drawing(content, 2000), {"output": {"format": "png"}})


def test_elements_and_texts_count() -> None:
    def needed(content: str) -> int:
        return imgsvc.inspect(drawing(content, 9)).contents or 0

    assert needed("<g/>" * 1000) > 3_000_000
    assert needed(f"<text>{1000 * 'a'}</text>") > 6_000_000
    assert needed(f'<path d="M0 0{1000 * "h1v1"}"/>') > 400_000
    least = imgsvc.Limits(memory_bytes=75_000_000)
    imgsvc.process(drawing("<g/>" * 1000, 9), {"output": {"format": "png"}}, limits=least)
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.process(drawing("<g/>" * 5000, 9), {"output": {"format": "png"}}, limits=least)


@pytest.mark.parametrize(
    "content",
    [
        '<g stroke-dasharray="{}">',
        '<g font-family="{}">',
        '<g xml:lang="{}">',
        '<g style="fill:red; stroke-dasharray: {}">',
        "<g><style>/* { */ * { font-family : '{}' }</style>",
        "<g><style><![CDATA[* { f\\6fnt-family: {}; }]]></style>",
        '<g><style>@import url("data:text/css,*{font-family:{}}");</style>',
    ],
)
def test_long_values_count_in_each_element_that_inherits_them(content: str) -> None:
    value = "1 " * 10_000 if "dash" in content else ";" * 20_000 if "'" in content else "a" * 20_000

    def needed(elements: int) -> int:
        return (
            imgsvc.inspect(drawing(content.replace("{}", value) + "<g/>" * elements + "</g>", 9)).contents
            or 0
        )

    assert needed(1000) - needed(0) > 1000 * len(value)


def test_long_values_that_few_elements_inherit_cost_little() -> None:
    font = f"<style>@font-face {{ font-family: a; src: url(data:font/woff;base64,{'A' * 90_000}) }}</style>"
    own = f'<path id="{"a" * 9000}" d="M0 0{"h1v1" * 2000}"/>'
    assert (imgsvc.inspect(drawing((font + own) + "<g/>" * 1000, 9)).contents or 0) < 25_000_000


def test_values_beyond_any_memory_are_refused_before_they_are_copied() -> None:
    content = f'<g stroke-dasharray="{"1 " * 100_000}">' + "<g/>" * 2000 + "</g>"
    with pytest.raises(imgsvc.ImageTooLarge, match="long values that many elements inherit"):
        imgsvc.inspect(drawing(content, 9), limits=imgsvc.Limits.none())


@pytest.mark.parametrize("front", [imgsvc.inspect, imgsvc.process])
def test_memory_for_elements_is_checked_before_librsvg_reads_them(
    front: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """librsvg ends the process if it gets less memory than it needs."""
    monkeypatch.setattr("pyvips.Image.svgload_buffer", None, raising=False)
    content = f'<g stroke-dasharray="{"1 " * 10_000}">' + "<g/>" * 2000 + "</g>"
    with pytest.raises(imgsvc.MemoryLimitExceeded, match=r"elements of the SVG .* at most 500,000,000"):
        front(drawing(content, 9), limits=imgsvc.Limits(memory_bytes=500_000_000))


def test_inlined_pictures_count_before_librsvg_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyvips.Image.svgload_buffer", None, raising=False)
    enlarged = imgsvc.process(PICTURE, {"resize": {"width": 4000}, "output": {"format": "jpg"}})
    picture = base64.b64encode(enlarged.data or b"").decode()
    content = f'<image href="data:image/jpeg;base64,{picture}"/>'
    with pytest.raises(imgsvc.MemoryLimitExceeded, match="of memory"):
        imgsvc.inspect(drawing(content, 9), limits=imgsvc.Limits(memory_bytes=50_000_000))


@pytest.mark.parametrize(
    ("content", "dashes"),
    [
        ('<path d="M0 0h9000" stroke-dasharray="1"/>', 4500),
        ('<path d="M0 0h9000" stroke-dasharray="1 2 3 4"/>', 1800),
        ('<path d="M0 0h9000" stroke-dasharray="none"/>', 0),
        ('<path d="M0 0h9000" stroke-dasharray="0"/>', 0),
        ('<path d="M0 0h9000"/>', 0),
        ('<g stroke-dasharray="1"><g><path d="M0 0h9000"/></g></g>', 4500),
        ('<g stroke-dasharray="1"><g stroke-dasharray="2"><path d="M0 0h9000"/></g></g>', 2250),
        ('<g style="stroke:red; stroke-dash\\61 rray: 1px !important"><path d="M0 0h9000"/></g>', 4500),
        ('<g stroke-dasharray="9"/><path d="M0 0h9000"/>', 0),
        ("<style>.a { stroke-dasharray: 1 }</style>" + '<path class="a" d="M0 0h9000"/>', 4500),
        ('<path d="M0 0h9000"/><style>* { stroke-dasharray: 1 }</style>', 4500),
        ('<line x2="9000" stroke-dasharray="1"/>', 4500),
        ('<rect width="4000" height="500" stroke-dasharray="1"/>', 4500),
        ('<rect width="400%" height="500" stroke-dasharray="1"/>', 4500),
        ('<circle r="1000" stroke-dasharray="1"/>', 3141),
        ('<ellipse rx="1000" ry="9" stroke-dasharray="1"/>', 3141),
        ('<polygon points="0,0 4500,0" stroke-dasharray="1"/>', 4500),
        ('<path d="M0 0h4000" stroke-dasharray="1"/>' * 3, 2000),
    ],
)
def test_dashes_of_the_longest_line_count(content: str, dashes: int) -> None:
    assert dash_bytes(drawing(content, 1000), 1000, 1000) // 700 == pytest.approx(dashes, abs=1)


@pytest.mark.parametrize(
    "content",
    [
        '<path d="M0 0h9000" stroke-dasharray="1" stroke-linecap="round"/>',
        '<path d="M0 0h9000" stroke-dasharray="1" style="stroke-linecap: round !important"/>',
        '<style>path { stroke-linecap: round }</style><path d="M0 0h9000" stroke-dasharray="1"/>',
        '<g stroke-linecap="round"><path d="M0 0h9000" stroke-dasharray="1"/></g>',
    ],
)
def test_dashes_with_round_ends_count_more(content: str) -> None:
    square = dash_bytes(drawing('<path d="M0 0h9000" stroke-dasharray="1"/>', 1000), 1000, 1000)
    assert dash_bytes(drawing(content, 1000), 1000, 1000) > 20 * square


@pytest.mark.parametrize(
    ("content", "dashes"),
    [
        ('<path d="M0 0h9" transform="scale(1000)" stroke-dasharray="1"/>', 4),
        ('<path d="M0 0h9" transform="scale(1000)" stroke-dasharray="1" {}/>', 4500),
        ('<g transform="scale(100)"><path d="M0 0h90" stroke-dasharray="1" {}/></g>', 4500),
        ('<path id="p" d="M0 0h90" stroke-dasharray="1" {}/><use href="#p" transform="scale(100)"/>', 4500),
        ('<svg viewBox="0 0 10 10"><path d="M0 0h90" stroke-dasharray="1" {}/></svg>', 4500),
        (
            "<style>path {{ vector-effect: non-scaling-stroke; transform: scale(100) }}</style>"
            '<path d="M0 0h90" stroke-dasharray="1"/>',
            4500,
        ),
    ],
)
def test_dashes_that_do_not_scale_fit_more_often_on_a_line(content: str, dashes: int) -> None:
    content = content.format('vector-effect="non-scaling-stroke"')
    assert dash_bytes(drawing(content, 1000), 1000, 1000) // 700 == pytest.approx(dashes, abs=1)


@pytest.mark.parametrize(
    ("path", "length"),
    [
        ("M0 0h10v10H0z", 40),
        ("M0 0 10 0 10 10", 20),
        ("m5 5 3 4M100,100l3-4", 10),
        ("M0 0zm0 5v5", 5),
        ("M3 4V0H0z", 12),
        ("M0 0V9z M5 5h1z", 20),
        ("M0 0c0 10 10 10 10 0s10-10 10 0", 60),
        ("M0 0C0 10 10 10 10 0S20-10 20 0", 60),
        ("M0 0q5 0 5 5t5 5", 20),
        ("M0 0Q5 0 5 5T10 10", 20),
        ("M1e1 0L2E1,0", 10),
    ],
)
def test_paths_are_as_long_as_the_lines_through_their_points(path: str, length: float) -> None:
    assert outline("path", {"d": path}, 9, 9) == pytest.approx(length)


@pytest.mark.parametrize("path", ["M0 0A5 5 0 0110 0", "m0 0a5,5,0,1,1,10,0", "M0 0a1 1 0 01 10 0"])
def test_arcs_are_no_longer_than_their_bound(path: str) -> None:
    assert 5 * 3.14 <= outline("path", {"d": path}, 9, 9) <= 50


def test_more_dashes_than_memory_are_refused() -> None:
    line = f'<path stroke="red" stroke-dasharray=".01" d="M0 0{"h900v.01h-900v.01" * 1000}"/>'
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.process(drawing(line, 1000), {"output": {"format": "png"}})
    round_ends = '<g stroke-dasharray="1" stroke-linecap="round"><path d="M0 0h9000"/></g>'
    assert dash_bytes(drawing(round_ends, 1000), 1000, 1000) > 20_000_000
