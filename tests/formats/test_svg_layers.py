"""What librsvg draws apart counts before anything is drawn: nested groups and inlined pictures."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

import imgsvc_core as imgsvc
from imgsvc_core._runtime.workers import WorkerPool
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
        nested('<g style="color:red; OPACITY : /**/ .5">'),
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
    ],
    ids=["opacity", "isolation", "comment", "blend", "mask", "clip", "filter", "same id", "class", "all",
         "results", "use", "masks", "cycle"],
)  # fmt: skip
def test_deeply_nested_layers_are_refused_by_their_memory(content: str) -> None:
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.process(drawing(content), {"output": {"format": "png"}})


@pytest.mark.parametrize(
    ("content", "most"),
    [
        ('<rect opacity=".5" width="9" height="9"/>' * 500, 1),
        ('<g fill-opacity=".5" opacity="1" style="stroke-opacity:.5;filter:None">' * 9 + "</g>" * 9, 0),
        ('<linearGradient id="a"/><g><g><rect fill="url(#a)" width="9" height="9"/></g></g>' * 500, 0),
        ("<style>.a{opacity:.5} .b{opacity: 1}</style>" + '<g class="b"><a class="a"/></g>' * 9, 2),
        ('<clipPath id="c"/><g clip-path="url(#c)"><g opacity=".5"><path/></g></g>' * 200, 2),
        ('<pattern id="p" width="9" height="9" patternUnits="userSpaceOnUse"/><rect fill="url(#p)"/>' * 9, 1),
        (
            '<pattern id="p" width="1" height="1"><image/></pattern>'
            '<rect width="9" height="9" fill="url(#p)"/><path d="M0 0L1000 1000H0z" fill="url(#p)"/>',
            1,
        ),
    ],
    ids=["siblings", "neutral", "gradients", "classes", "clips", "small patterns", "boxed patterns"],
)  # fmt: skip
def test_ordinary_drawings_need_few_layers(content: str, most: int) -> None:
    info = imgsvc.inspect(drawing(content, 4000))
    assert (info.layers or 0) <= most
    imgsvc.explain({"output": {"format": "png"}}, info)


def test_layers_of_inlined_drawings_count() -> None:
    inner = base64.b64encode(drawing(nested('<g opacity=".9">'))).decode()
    with pytest.raises(imgsvc.ImageTooLarge, match="inlined in the SVG image"):
        imgsvc.inspect(drawing(f'<image href="data:image/svg+xml;base64,{inner}" width="9" height="9"/>', 20))


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


def test_fonts_and_long_values_cost_little() -> None:
    font = f"<style>@font-face {{ font-family: a; src: url(data:font/woff;base64,{'A' * 90_000}) }}</style>"
    own = f'<path id="{"a" * 9000}" d="M0 0{"h1v1" * 2000}"/>'
    assert (imgsvc.inspect(drawing((font + own) + "<g/>" * 1000, 9)).contents or 0) < 25_000_000


@pytest.mark.parametrize("front", [imgsvc.inspect, imgsvc.process])
def test_memory_for_elements_is_checked_before_librsvg_reads_them(
    front: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """librsvg ends the process if it gets less memory than it needs."""
    monkeypatch.setattr("pyvips.Image.svgload_buffer", None, raising=False)
    content = f"<text>{'a' * 100_000}</text>"
    with pytest.raises(imgsvc.MemoryLimitExceeded, match=r"elements of the SVG .* at most 500,000,000"):
        front(drawing(content, 9), limits=imgsvc.Limits(memory_bytes=500_000_000))


def test_inlined_pictures_count_before_librsvg_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyvips.Image.svgload_buffer", None, raising=False)
    enlarged = imgsvc.process(PICTURE, {"resize": {"width": 4000}, "output": {"format": "jpg"}})
    picture = base64.b64encode(enlarged.data or b"").decode()
    content = f'<image href="data:image/jpeg;base64,{picture}"/>'
    with pytest.raises(imgsvc.MemoryLimitExceeded, match="of memory"):
        imgsvc.inspect(drawing(content, 9), limits=imgsvc.Limits(memory_bytes=50_000_000))


IN_USER_UNITS = 'width="99" height="99" patternUnits="userSpaceOnUse" patternTransform="scale(300)"'
BOMBS = {
    "dashes": f'<path stroke="red" stroke-dasharray=".01" d="M0 0{"h900v.01h-900v.01" * 1000}"/>',
    "pattern": f'<pattern id="p" {IN_USER_UNITS}><rect width="90" height="90"/></pattern>'
    '<rect width="100" height="100" fill="url(#p)"/>',
    "inherited": f'<g stroke-dasharray="{"1 " * 100_000}">' + "<g/>" * 5000 + "</g>",
    "import": f'<style>@import url("data:text/css,g{{opacity:.5}}")</style>{nested("<g>") * 3}',
}


@pytest.mark.parametrize("kind", BOMBS)
def test_what_the_bound_does_not_count_is_an_error_of_the_picture_in_a_worker(kind: str) -> None:
    with WorkerPool(1, memory_bytes=1 << 30) as pool:
        work = pool.submit(
            imgsvc.process, drawing(BOMBS[kind], 2500), {"output": {"format": "png"}}, seconds=60
        )
        with pytest.raises(imgsvc.MemoryLimitExceeded):
            work.result()
        assert pool.submit(int, "5", seconds=60).result() == 5
