"""The size of an SVG, as Chromium has it, and its edges at other sizes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.svg import bounds
from imgsvc_core.plan import compile_plan
from imgsvc_core.plan.decoding import loaded_size
from tests.support import requires
from tests.support.browser import chromium

NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'

AS_IN_BROWSERS = {
    "": (300, 150),
    'width="100"': (100, 150),
    'height="100"': (300, 100),
    'width="30" height="20"': (30, 20),
    'width="60" viewBox="0 0 30 20"': (60, 40),
    'height="100" viewBox="0 0 24 12"': (200, 100),
    'height="20" viewBox="0,0,20,10"': (40, 20),
    'height="20" viewBox="0 0 0 10"': (300, 20),
    'width="20" viewBox="0 0 0 10"': (20, 150),
    'height="20" viewBox="0 0 -5 10"': (300, 20),
    'height="20" viewBox="wrong"': (300, 20),
    'width="100%" height="100%"': (300, 150),
    'width="50%" height="20"': (300, 20),
    'width="24" height="100%" viewBox="0 0 24 24"': (24, 24),
    'width="auto" height="50" viewBox="0 0 20 10"': (100, 50),
    'width="wrong" height="30"': (300, 30),
    'width="100 px" height="50"': (300, 50),
    'width=" +1e2 " height=".5e2px"': (100, 50),
    'width="1in" height="25.4mm"': (96, 96),
    'width="2cm" height="40q"': (76, 38),
    'width="12pt" height="1PC"': (16, 16),
    'width="10em" height="2rem"': (160, 32),
    'font-size="20" width="10em" height="2rem"': (200, 40),
    'font-size="150%" width="10em" height="2rem"': (240, 48),
    'font-size="20" style="font-size: 10px; x-font-size:1px" width="10em" height="2em"': (100, 20),
    'font-size="none" width="10em" height="2em"': (160, 32),
    'width="10.4" height="10.6"': (10, 11),
    'style="width:80px;height:40px"': (300, 150),
    'style="width:100%" width="30" height="30"': (30, 30),
}


def drawing(attributes: str, shapes: str = "") -> bytes:
    return f"<svg {NAMESPACE} {attributes}>{shapes}</svg>".encode()


def size_of(data: bytes) -> tuple[int, int]:
    info = imgsvc.inspect(data)
    return info.width, info.height


def drawn(data: bytes, **request: Any) -> Any:
    """Return RGBA of what is drawn."""
    result = imgsvc.process(data, {**request, "output": {"format": "png"}})
    return np.asarray(result.to_pil().convert("RGBA"))


@pytest.mark.parametrize("attributes", AS_IN_BROWSERS)
def test_the_size_is_that_of_browsers(attributes: str) -> None:
    assert size_of(drawing(attributes)) == AS_IN_BROWSERS[attributes]


def test_browsers_have_these_sizes() -> None:
    measure = """async url => {
        const image = new Image(); image.src = url; await image.decode();
        return [image.naturalWidth, image.naturalHeight]
    }"""
    with chromium() as browser:
        page = browser.new_page()
        found = {
            attributes: tuple(
                page.evaluate(measure, "data:image/svg+xml;utf8," + drawing(attributes).decode())
            )
            for attributes in AS_IN_BROWSERS
        }
    assert found == AS_IN_BROWSERS


def test_a_view_box_alone_is_the_size() -> None:
    assert size_of(drawing('viewBox="5 5 1000 400"')) == (1000, 400)
    assert size_of(drawing('viewBox="5 5 30 40" width="100%" height="100%"')) == (30, 40)


def test_nothing_is_cut_off_without_a_size() -> None:
    shapes = '<rect x="10" y="5" width="40" height="20" fill="red"/><circle cx="80" cy="30" r="15"/>'
    found = drawn(drawing("", shapes))
    assert found.shape == (150, 300, 4)
    assert np.array_equal(found, drawn(drawing('width="300" height="150"', shapes)))
    rows, columns = np.nonzero(found[..., 3])
    assert (columns.min(), columns.max(), rows.min(), rows.max()) == (10, 94, 5, 44)


@pytest.mark.parametrize("side", ["width", "height"])
def test_no_style_sheet_changes_the_size(side: str) -> None:
    sheet = f"<style>svg {{ {side}: 5px !important }}</style>"
    found = drawn(drawing('width="20" height="10"', f'{sheet}<rect width="20" height="10"/>'))
    assert found.shape[:2] == (10, 20)
    assert (found[..., 3] == 255).all()


def test_lengths_within_are_those_of_the_size() -> None:
    found = drawn(drawing('width="4cm" height="20mm"', '<rect width="2cm" height="20mm"/>'))
    assert np.abs((found[..., 3] / 255).sum(axis=1) - 2 * 96 / 2.54).max() < 0.5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "iso-8859-1", "gb18030"])
def test_a_drawing_in_any_encoding(encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    start = f'<?xml version="1.0" encoding="{declared}"?><!-- ü > -->'
    text = f'{start}<svg {NAMESPACE} id="ü > \'" height="20"><rect/></svg>'
    assert drawn(text.encode(encoding)).shape[:2] == (20, 300)


SIDES = st.one_of(st.integers(8, 2000), st.floats(8, 2000).map(lambda side: round(side, 2)))
STARTS = st.sampled_from([0, -3.5, 12])


@given(
    sides=st.tuples(SIDES, SIDES),
    box=st.one_of(st.none(), st.tuples(STARTS, STARTS, st.sampled_from([1, 0.25, 1.7, 40]))),
    fit=st.sampled_from(["", "none", "xMinYMax meet", "xMidYMid slice"]),
    width=st.integers(4, 700),
)
def test_a_drawing_that_fills_its_box_is_opaque_at_every_size(
    sides: tuple[float, float], box: tuple[float, float, float] | None, fit: str, width: int
) -> None:
    left, top, scale = box or (0, 0, 1)
    across, down = (repr(side * scale) for side in sides)
    attributes = f'width="{sides[0]}" height="{sides[1]}" preserveAspectRatio="{fit}"'
    if box is not None:
        attributes += f' viewBox="{left} {top} {across} {down}"'
    data = drawing(attributes, f'<rect x="{left}" y="{top}" width="{across}" height="{down}" fill="#c24"/>')
    assume(1 <= width * sides[1] / sides[0] <= 3000)
    found = drawn(data, resize={"width": width})
    assert (found == (0xCC, 0x22, 0x44, 255)).all()


@pytest.mark.parametrize("request_", [
    {"resize": {"width": 333, "height": 100, "mode": "stretch"}},
    {"resize": {"width": 50, "height": 50, "mode": "fit"}},
    {"crop": {"width": 301, "height": 57}, "resize": {"width": 100}},
    {"rotate": {"angle": 90}, "resize": {"height": 77}},
    {"flip": {"horizontal": True}, "scale": {"size": 0.377}},
])  # fmt: skip
def test_it_stays_opaque_on_other_ways(request_: dict[str, Any]) -> None:
    data = drawing('width="1000" height="384"', '<rect width="1000" height="384" fill="red"/>')
    assert (drawn(data, **request_) == (255, 0, 0, 255)).all()


@pytest.mark.parametrize(
    "style", ["width:20px!important", "height : 9em ! important;fill:blue", "top:0;HEIGHT:5px!important"]
)
def test_the_size_that_is_asked_for_counts_more_than_a_style(style: str) -> None:
    shapes = '<rect width="1000" height="384" fill="red"/>'
    data = drawing(f'width="1000" height="384" style="{style}"', shapes)
    assert (drawn(data, resize={"width": 100}) == (255, 0, 0, 255)).all()


def test_a_side_that_is_filled_stays_filled_where_the_other_is_rounded() -> None:
    """The view box leaves two pixels above and below, and none at the sides; of 4 rows it would not."""
    shapes = '<rect width="1000" height="380"/>'
    found = drawn(drawing('width="1000" height="384" viewBox="0 0 1000 380"', shapes), resize={"width": 11})
    assert found.shape == (4, 11, 4)
    assert (found[1:3, :, 3] == 255).all()


@given(sides=st.tuples(SIDES, SIDES), width=st.integers(4, 3000))
def test_it_is_rendered_at_the_size_that_is_asked_for(sides: tuple[float, float], width: int) -> None:
    info = imgsvc.inspect(drawing('width="{}" height="{}"'.format(*sides)))
    assume(1 < width * info.height / info.width < 16_000)
    plan = compile_plan(imgsvc.parse({"resize": {"width": width}}), info)
    assert loaded_size(info, plan.load.scale) == plan.size


def test_a_drawing_of_which_only_the_size_is_known_is_rendered_larger() -> None:
    info = imgsvc.ImageInfo(format="svg", width=100, height=50, colorspace="srgb", bytes=0)
    assert imgsvc.explain({"resize": {"width": 2000}}, info).load.scale == 20


@pytest.mark.parametrize("width", [29, 50, 101, 333, 1000])
def test_edges_inside_the_box_stay_soft(width: int) -> None:
    """A circle that touches the edges has the area it should, and no pixel is rounded."""
    data = drawing('width="100" height="100"', '<circle cx="50" cy="50" r="50"/>')
    alpha = drawn(data, resize={"width": width})[..., 3] / 255
    assert alpha.sum() == pytest.approx(np.pi / 4 * width**2, rel=6e-3)
    assert 2 * width < ((alpha > 0) & (alpha < 1)).sum() < 6 * width


@given(
    width=st.integers(20, 200),
    ratio=st.floats(0.3, 3),
    fit=st.sampled_from(
        ["xMinYMin meet", "xMidYMid meet", "xMaxYMax meet", "xMidYMid slice", "xMaxYMin slice"]
    ),
)
def test_a_view_box_of_another_ratio_is_placed_as_the_document_says(
    width: int, ratio: float, fit: str
) -> None:
    resvg = requires.module("resvg_py")
    shapes = '<rect width="40" height="30" fill="#36c"/><path d="M0 0 40 30M40 0 0 30" stroke="red"/>'
    data = drawing(
        f'width="{400 * ratio}" height="400" viewBox="0 0 40 30" preserveAspectRatio="{fit}"', shapes
    )
    found = drawn(data, resize={"width": width})
    sized = data.replace(b'height="400"', b'height="%d"' % found.shape[0], 1)
    sized = sized.replace(f'width="{400 * ratio}"'.encode(), b'width="%d"' % width, 1)
    png = io.BytesIO(resvg.svg_to_bytes(svg_string=sized.decode()))
    expected = np.asarray(Image.open(png).convert("RGBA"))
    assert found.shape == expected.shape
    a_line = 255 / min(found.shape[:2])  # that is soft there
    assert np.abs(found.astype(int) - expected).max(axis=2).mean() < 5 + a_line


@pytest.mark.parametrize(
    ("stated", "meaning"),
    [
        ("none", "none"),
        (" none slice ", "none"),
        ("xMaxYMax", "xMaxYMax meet"),
        ("xMinYMin\tslice", "xMinYMin slice"),
        ("xMinYMinslice", "xMinYMin slice"),
        ("defer none", "xMidYMid meet"),
        ("defer xMinYMin slice", "xMidYMid meet"),
        ("xminymin slice", "xMidYMid meet"),
        ("xMidYMid none", "xMidYMid meet"),
        ("slice", "xMidYMid meet"),
        ("NONE", "xMidYMid meet"),
    ],
)
def test_a_wrong_fit_is_the_usual_one_as_in_browsers(stated: str, meaning: str) -> None:
    shapes = '<rect width="40" height="30" fill="#36c"/><path d="M0 0 40 30" stroke="red"/>'
    found, expected = (
        drawn(drawing(f'width="90" height="40" viewBox="0 0 40 30" preserveAspectRatio="{fit}"', shapes))
        for fit in (stated, meaning)
    )
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("sides", ['width="-5" height="9"', 'width="9" height="-0.6"', 'width="0"'])
def test_sides_below_zero_are_no_size(sides: str) -> None:
    data = f'<svg xmlns="http://www.w3.org/2000/svg" {sides}><rect width="9" height="9"/></svg>'.encode()
    with pytest.raises(imgsvc.CorruptImage, match="it has no size"):
        imgsvc.inspect(data)


def test_a_drawing_of_too_many_elements_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_MOST_ELEMENTS", 100)
    assert size_of(drawing('width="9" height="9"', "<g/>" * 99)) == (9, 9)
    with pytest.raises(imgsvc.UnsupportedFormat, match="more than 100"):
        imgsvc.inspect(drawing('width="9" height="9"', "<g/>" * 100))


@pytest.mark.parametrize("root", ["<svg>", "<svg >", "<!-- <svg> --><svg>"])
def test_a_root_without_attributes_has_the_usual_size(root: str) -> None:
    assert drawn(f'{root}<rect width="9" height="9"/></svg>'.encode()).shape[:2] == (150, 300)
