"""What a browser says becomes a request: formats, density, width and quality."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from imgsvc_core import Output, Resize, Spec
from imgsvc_http.ways.negotiation import Negotiated, negotiate, shown_formats
from imgsvc_urls import parse

CHROME = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
FIREFOX = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
SAFARI = "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,*/*;q=0.5"


def _negotiated(text: str, client_hints: bool = True, **headers: str) -> Negotiated:
    given = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    return negotiate(parse(text), {}, given, client_hints=client_hints)


@pytest.mark.parametrize(
    ("accept", "shown"),
    [
        (CHROME, "image/avif,image/webp,image/*"),
        (FIREFOX, "image/avif,image/webp,image/*"),
        (SAFARI, "image/avif,image/webp,image/*"),
        ("*/*", "image/*"),
        ("", "image/*"),
        ("IMAGE/WEBP", "image/webp,image/*"),
        ("image/jxl,image/webp,*/*", "image/jxl,image/webp,image/*"),
        ("image/avif;q=0, image/webp;q=0.5", "image/webp,image/*"),
        ("image/avif; q=0.0,image/webp; q=0.000", "image/*"),
        ("text/html,,;;q=,image/webp;q", "image/webp,image/*"),
    ],
)
def test_few_variants_of_accept_are_told_apart(accept: str, shown: str) -> None:
    assert shown_formats(accept) == shown


def test_only_a_negotiated_format_varies_with_accept() -> None:
    asked = _negotiated("/format:auto/photos/a.jpg", client_hints=False, Accept=CHROME)
    assert (asked.accept, asked.vary) == ("image/avif,image/webp,image/*", ("Accept",))
    for text in ("/format:webp/photos/a.jpg", "/photos/a.jpg"):
        asked = _negotiated(text, client_hints=False, Accept=CHROME)
        assert (asked.accept, asked.vary) == (None, ())


def test_hints_are_ignored_unless_they_are_on() -> None:
    hints = {"Sec_CH_DPR": "2", "Sec_CH_Width": "100", "Save_Data": "on"}
    asked = _negotiated("/photos/a.jpg", client_hints=False, **hints)
    assert (asked.spec, asked.dpr, asked.vary) == (Spec(), 1, ())


@pytest.mark.parametrize(
    ("hint", "dpr"),
    [("2", 2), ("1.25", 1.5), ("2.625", 3), ("0.3", 0.5), ("9", 5), ("", 1), ("x", 1), ("nan", 1), ("-2", 1),
     ("inf", 1), ("1e9", 1)],
)  # fmt: skip
def test_the_density_of_the_screen_is_rounded_up(hint: str, dpr: float) -> None:
    asked = _negotiated("/resize:100x/photos/a.jpg", Sec_CH_DPR=hint)
    assert asked.spec.resize is not None
    assert (asked.dpr, asked.spec.resize.width) == (dpr, round(100 * dpr))
    assert asked.vary == ("Save-Data", "Sec-CH-DPR")


def test_the_density_of_a_url_wins() -> None:
    assert _negotiated("/resize:100x/dpr:1/photos/a.jpg", Sec_CH_DPR="2").dpr == 1
    asked = _negotiated("/resize:100x/dpr:3/photos/a.jpg", Sec_CH_DPR="2")
    assert asked.spec.resize is not None
    assert (asked.dpr, asked.spec.resize.width, asked.vary) == (3, 300, ("Save-Data",))


def test_a_density_that_makes_sizes_too_large_is_ignored() -> None:
    asked = _negotiated("/resize:20000x/photos/a.jpg", Sec_CH_DPR="4")
    assert asked.spec.resize == Resize(width=20_000)


@pytest.mark.parametrize(("hint", "width"), [("640", 640), ("641", 704), ("99999", 16_384), ("1", 64)])
def test_the_width_on_the_screen_is_that_of_pictures_without_a_size(hint: str, width: int) -> None:
    asked = _negotiated("/sepia:50/photos/a.jpg", Sec_CH_Width=hint)
    assert asked.spec.resize == Resize(width=width, upscale=False)
    assert "Sec-CH-Width" in asked.vary
    for text in ("/resize:x300/photos/a.jpg", "/scale:0.5/photos/a.jpg"):
        sized = _negotiated(text, Sec_CH_Width=hint)
        assert sized.spec == parse(text).spec()
        assert "Sec-CH-Width" not in sized.vary


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("/photos/a.jpg", Output(quality=50)),
        ("/format:webp/photos/a.jpg", Output(format="webp", quality=50)),
        ("/format:png/photos/a.jpg", Output(format="png")),
        ("/quality:80/photos/a.jpg", Output(quality=80)),
        ("/max-bytes:5000/photos/a.jpg", Output(max_bytes=5000)),
        ("/look:80/photos/a.jpg", Output(look=80)),
        ("/lossless:1/photos/a.jpg", Output(lossless=True)),
    ],
)
def test_save_data_lowers_the_quality_that_a_url_leaves_open(text: str, output: Output) -> None:
    assert _negotiated(text, Save_Data="on").spec.output == output
    assert _negotiated(text, Save_Data="off").spec == parse(text).spec()


def test_save_data_wins_over_the_density_of_the_screen() -> None:
    assert _negotiated("/resize:100x/photos/a.jpg", Sec_CH_DPR="3", Save_Data="ON").dpr == 1
