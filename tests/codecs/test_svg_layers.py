"""Nested groups of drawings that are rendered apart count before anything is rendered."""

from __future__ import annotations

import base64

import pytest

import imgsvc_core as imgsvc

GROUPS = 60


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
        '<clipPath id="c"/>' + nested('<g clip-path="url(#c)">'),
        '<filter id="f"/>' + nested('<g style="filter:url(#f)">'),
        nested('<g id="a" opacity=".9">'),
        nested('<g class="a b">') + "<style>g rect, .b { opacity: .5 }</style>",
        "<style><![CDATA[@media all { * { isolation: isolate } }]]></style>" + nested("<g>"),
        '<filter id="f">' + '<feFlood result="{}"/>' * 2 * GROUPS + '</filter><g filter="url(#f)"/>',
        chained(
            '<g id="e0"/>', '<g id="{id}"><use opacity=".5" xlink:href="#{before}"/></g>'
        ) + '<use href="#e59"/>',
        chained(
            '<mask id="e0"/>', '<mask id="{id}"><rect width="9" height="9" mask="url(#{before})"/></mask>'
        ) + '<rect mask="url(#e59)"/>',
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
        ('<rect opacity=".5" width="9" height="9"/>' * 500, 2),
        ('<g fill-opacity=".5" opacity="1" style="stroke-opacity:.5;filter:none">' * 9 + "</g>" * 9, 0),
        ('<linearGradient id="a"/><g><g><rect fill="url(#a)" width="9" height="9"/></g></g>' * 500, 0),
        ("<style>.a{opacity:.5} .b{opacity: 1}</style>" + '<g class="b"><a class="a"/></g>' * 9, 2),
        ('<clipPath id="c"/><g clip-path="url(#c)"><g opacity=".5"><path/></g></g>' * 200, 4),
    ],
    ids=["siblings", "neutral", "gradients", "classes", "groups"],
)  # fmt: skip
def test_ordinary_drawings_need_few_layers(content: str, layers: int) -> None:
    info = imgsvc.inspect(drawing(content, 4000))
    assert info.layers == layers
    imgsvc.explain({"output": {"format": "png"}}, info)


def test_layers_of_inlined_drawings_count() -> None:
    inner = base64.b64encode(drawing(nested('<g opacity=".9">'))).decode()
    with pytest.raises(imgsvc.ImageTooLarge, match="inlined in the SVG image"):
        imgsvc.inspect(drawing(f'<image href="data:image/svg+xml;base64,{inner}" width="9" height="9"/>', 20))
