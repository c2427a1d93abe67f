"""Texts: lines, ends, places and looks, measured on pixels."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import imgsvc_core as imgsvc
from imgsvc_core.errors import SpecError
from imgsvc_core.pixels.layers.drawn import Drawn
from imgsvc_core.pixels.layers.effects import outlined
from imgsvc_core.pixels.layers.text import _MOST_KEPT, _ends, draw_text, drawn_texts
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.spec import Layer
from tests.support.golden import GoldenCheck
from tests.support.photos import as_vips

pytest.importorskip("fontpkg_inter")
pytest.importorskip("manimgx_fonts")

FRAME = Size(800, 400)
PANGRAM = "The quick brown fox jumps over the lazy dog"


def drawn(text: Any, *, frame: Size = FRAME, **layer: Any) -> Drawn:
    asked = {"text": text} if isinstance(text, str) else text
    return draw_text(Laid(Layer(text={"size": 40, **asked}, **layer), "layers[0]", frame)).filled


@pytest.mark.parametrize("metadata", ["strip", "keep"])
@pytest.mark.parametrize("color", ["ffffff", "80ff3300"])
def test_a_text_that_was_drawn_before_looks_the_same(metadata: str, color: str) -> None:
    layer = {"text": {"text": "Autumn", "size": 30, "color": color}, "gravity": "center"}
    request = {"layers": [layer], "output": {"format": "png", "metadata": metadata}}
    pictures = [np.full((90, 200, 3), level, np.uint8) for level in (0, 200)]
    drawn_texts.clear()
    first = [imgsvc.process(as_vips(picture), request).data for picture in pictures]
    assert len(drawn_texts) == 1
    for picture, expected in zip(pictures, first, strict=True):
        drawn_texts.clear()
        assert imgsvc.process(as_vips(picture), request).data == expected


def test_few_and_small_texts_are_kept() -> None:
    drawn_texts.clear()
    for number in range(3 * _MOST_KEPT):
        drawn(f"{number}")
        assert 1 <= len(drawn_texts) <= _MOST_KEPT
    assert np.array_equal(drawn("7").image.numpy(), drawn("7").image.numpy())
    assert not np.array_equal(drawn("7").image.numpy(), drawn("1").image.numpy())
    drawn_texts.clear()
    drawn({"text": PANGRAM, "size": 400}, frame=Size(9000, 9000))
    assert not drawn_texts


def alpha(made: Drawn) -> Any:
    return made.image.numpy()[..., 3]


def bands(ink: Any, axis: int = 1) -> list[tuple[int, int]]:
    """First and last row, or column, of each run of those with ink."""
    rows = np.flatnonzero(np.diff(np.concatenate([[0], (ink > 0).any(axis).astype(int), [0]])))
    return [(int(first), int(last)) for first, last in zip(rows[::2], rows[1::2], strict=True)]


def test_letters_have_the_color_and_the_paper_is_transparent() -> None:
    made = drawn({"text": "Hill", "color": "80FF3300"}).image.numpy()
    assert made[..., 3].max() == 0x80
    inside = made[made[..., 3] == 0x80]
    assert np.abs(inside[:, :3].astype(int) - [0xFF, 0x33, 0x00]).max() <= 2
    assert (made[..., 3] == 0).mean() > 0.3


def test_percent_of_the_size_are_of_the_shorter_side() -> None:
    by_percent, by_pixels = drawn({"text": "Hi", "size": "10%"}), drawn("Hi")
    assert np.array_equal(by_percent.image.numpy(), by_pixels.image.numpy())


@pytest.mark.parametrize("line_height", [1.0, 1.5, 2.25])
def test_lines_have_the_distance_and_their_box_all_of_it(line_height: float) -> None:
    made = drawn({"text": "x\nx\nx", "line_height": line_height})
    first, second, third = bands(alpha(made))
    assert second[0] - first[0] == third[0] - second[0] == round(40 * line_height)
    assert made.box.height == round(3 * 40 * line_height)


def test_letter_spacing_adds_space_between_letters() -> None:
    plain, spaced = (bands(alpha(drawn({"text": "lll", "letter_spacing": space})), 0) for space in (0, "25%"))
    assert spaced[1][0] - spaced[0][0] == plain[1][0] - plain[0][0] + 10
    assert len(plain) == len(spaced) == 3


@pytest.mark.parametrize(
    "word", ["مرحبا", "سَلَامٌ", "می\u200cخواهم", "مـرحـبا", "ܫܠܡܐ", "ߒߞߏ", "ࡌࡀࡍࡃ", "ᠮᠣᠩᠭ", "ꡏꡡꡃ", "𐴀𐴁𐴂"]
)
@pytest.mark.parametrize("spacing", [12, "-10%"])
def test_letter_spacing_keeps_joined_scripts_joined(word: str, spacing: int | str) -> None:
    """As in browsers."""
    texts = ({"text": word, "letter_spacing": space, "missing": "box"} for space in (0, spacing))
    plain, spaced = (drawn(text).image.numpy() for text in texts)
    assert np.array_equal(spaced, plain)


def test_letter_spacing_widens_what_is_between_joined_words() -> None:
    texts = ({"text": "لل لل", "letter_spacing": space} for space in (0, 12))
    (first, second), (spaced, other) = (bands(alpha(drawn(text)), 0) for text in texts)
    assert 11 <= (other[0] - spaced[1]) - (second[0] - first[1]) <= 13


def test_letter_spacing_splits_ligatures() -> None:
    """As in browsers: what is optional, such as the arrow that Inter makes of two signs, is not drawn."""
    joined, split = (bands(alpha(drawn({"text": "->", "letter_spacing": space})), 0) for space in (0, 8))
    assert (len(joined), len(split)) == (1, 2)


@pytest.mark.parametrize("other", ["long line of words", "سطر طويل من الكلمات"])
@pytest.mark.parametrize(("align", "place"), [("left", 0), ("center", 0.5), ("right", 1)])
def test_lines_are_aligned_within_the_longest_one_without_a_width(
    align: str, place: float, other: str
) -> None:
    made = alpha(drawn({"text": f"lll\n{other}", "align": align}))
    rows = bands(made)
    first = np.flatnonzero(made[: rows[0][1]].any(0))
    free = made.shape[1] - 1 - (first[-1] - first[0])
    assert abs(first[0] - place * free) <= 3
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("align", "text", "side"),
    [
        ("start", "ill", "left"), ("left", "ill", "left"), ("center", "ill", "center"),
        ("right", "ill", "right"),
        ("start", "שלום", "right"), ("left", "שלום", "left"), ("right", "שלום", "right"),
        ("start", "12 שלום", "right"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("lines", [None, 1, 2])
def test_lines_lie_where_they_are_aligned(align: str, text: str, side: str, lines: int | None) -> None:
    made = drawn({"text": text, "align": align, "lines": lines}, width=300)
    assert made.box.width == 300
    assert 48 <= made.box.height <= 50
    ink = np.flatnonzero((alpha(made) > 0).any(0)) - made.margin
    free = {"left": ink[0], "right": 299 - ink[-1], "center": abs(ink[0] - (299 - ink[-1]))}[side]
    assert free <= 4


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("n" * 12, "nnnnnnnn\nnnnn"),
        ("code-AB12CD34EF", "code-\nAB12CD3\n4EF"),
        ("Donau\u00addampf\u00adschiff", "Donau\u2010\ndampf\u2010\nschiff"),
        ("Donau\u00adbett", "Donaubett"),
    ],
)
def test_only_soft_hyphens_become_hyphens_at_the_ends_of_lines(text: str, lines: str) -> None:
    broken, expected = (drawn({"text": one}, width=190).image.numpy() for one in (text, lines))
    assert np.array_equal(broken, expected)


def test_a_direction_may_be_forced() -> None:
    ltr, rtl = (drawn({"text": "(a) 12", "direction": way}, width=300) for way in ("ltr", "rtl"))
    assert bands(alpha(ltr), 0)[0][0] < 20
    assert bands(alpha(rtl), 0)[-1][1] > 280


def test_justified_lines_fill_the_width() -> None:
    lines = bands(alpha(made := drawn({"text": PANGRAM, "align": "justify"}, width=300)))
    assert len(lines) >= 3
    for top, bottom in lines[:-1]:
        ink = np.flatnonzero((alpha(made)[top:bottom] > 0).any(0))
        assert ink[0] <= 4
        assert ink[-1] >= 295


@settings(max_examples=25, deadline=None)
@given(width=st.integers(60, 700), lines=st.integers(1, 4), size=st.integers(10, 60))
def test_at_most_so_many_lines_are_written(width: int, lines: int, size: int) -> None:
    """Rows of ink are counted: the distance of lines leaves a gap between them."""
    asked = {"text": PANGRAM.upper(), "size": size, "lines": lines, "line_height": 1.6}
    limited, free = drawn(asked, width=width), drawn({**asked, "lines": None}, width=width)
    assert len(bands(alpha(limited))) <= lines
    if free.box.height <= lines * round(1.6 * size) + 1:
        assert np.array_equal(limited.image.numpy(), free.image.numpy())
    else:
        assert limited.box.height <= lines * 1.6 * size + 1


def test_an_ellipsis_takes_the_place_of_as_few_letters_as_possible() -> None:
    made = drawn({"text": PANGRAM, "lines": 1}, width=400)
    ends = [drawn({"text": f"{PANGRAM[:end].rstrip()}…"}).box.width for end in range(1, len(PANGRAM))]
    assert made.image.width - 2 * made.margin == 400
    ink = np.flatnonzero((alpha(made) > 0).any(0))
    longest = max(width for width in ends if width <= 400)
    assert abs((ink[-1] - ink[0] + 1) - longest) <= 2


@pytest.mark.parametrize(
    ("text", "align", "side"),
    [
        ("Donaudampfschifffahrtsgesellschaft, and more", "start", 0),
        ("Donaudampfschifffahrtsgesellschaft, and more", "right", 1),
        ("שלום עולם יפה ביום הזה", "start", 1),
        ("مرحبا بالعالم الجميل في هذا اليوم", "start", 1),
        ("あいうえおかきくけこさしすせそたちつてと", "right", 1),
    ],
)
@pytest.mark.parametrize("lines", [1, 2])
def test_lines_that_end_in_an_ellipsis_stay_in_their_box(
    text: str, align: str, side: int, lines: int
) -> None:
    for width in range(100, 200, 20):
        made = drawn({"text": text, "align": align, "lines": lines, "letter_spacing": 1}, width=width)
        ink = np.flatnonzero((alpha(made) > 0).any(0)) - made.margin
        assert ink[0] >= -2
        assert ink[-1] <= width + 2
        assert made.box.height <= lines * 50
        assert (width - 1 - ink[-1] if side else ink[0]) <= (5 if lines == 1 else 45)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("abc", ["a", "b", "c"]),
        ("e\u0301a\u0300\u0323", ["e\u0301", "a\u0300\u0323"]),
        ("नमस्ते", ["न", "म", "स्ते"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("👨\u200d👩\u200d👧👍🏽", ["👨\u200d👩\u200d👧", "👍🏽"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("각나", ["각", "나"]),
        ("\u1100\u1161\u11a8\u1102\u1161", ["\u1100\u1161\u11a8", "\u1102\u1161"]),
        ("\ua960\ud7b0\ud7cb\u1100", ["\ua960\ud7b0\ud7cb", "\u1100"]),
        ("น้ำใจ", ["น้ำ", "ใ", "จ"]),
        ("ｶﾞｷﾟ", ["ｶﾞ", "ｷﾟ"]),
        ("\u0600٣٤", ["\u0600٣", "٤"]),
        ("می\u200cخ", ["م", "ی\u200c", "خ"]),
        ("🏴\U000e0067\U000e0062\U000e007f!", ["🏴\U000e0067\U000e0062\U000e007f", "!"]),
        ("❤\ufe0f!", ["❤\ufe0f", "!"]),
    ],
)
def test_texts_end_between_letters_of_their_script(text: str, parts: list[str]) -> None:
    ends = _ends(text)
    assert [text[start:end] for start, end in itertools.pairwise(ends)] == parts


def test_letters_that_are_newer_than_python_are_drawn() -> None:
    """Python 3.11 knows Unicode 14, and the fonts have emoji of Unicode 15."""
    assert alpha(drawn("\U0001fa77")).max() == 255
    with pytest.raises(SpecError, match=r"must have letters that a font has, got '.' \(U\+1FFFD\)"):
        drawn("\U0001fffd")


@settings(max_examples=10, deadline=None)
@given(width=st.integers(80, 500), height=st.integers(30, 300))
def test_letters_become_as_large_as_fits(width: int, height: int) -> None:
    made = drawn({"text": PANGRAM, "size": 120, "fit": True}, width=width, height=height)
    assert made.box == (width, height)
    ink = alpha(made)[:, made.margin : made.margin + width]
    assert (ink > 0).sum() == (alpha(made) > 0).sum() or made.margin <= 3
    if height < 60:  # few lines, so that the size that fits can be found by trying all
        best = next(size for size in range(60, 0, -1) if _fits(size, width, height))
        by_size = drawn({"text": PANGRAM, "size": best}, width=width, height=height)
        assert abs(alpha(by_size).sum() / alpha(made).sum() - 1) < 0.02


def _fits(size: int, width: int, height: int) -> bool:
    if _widest_word(size) > width:
        return False
    return drawn({"text": PANGRAM, "size": size}, width=width).box.height <= height


@functools.cache
def _widest_word(size: int) -> int:
    return max(drawn({"text": word, "size": size}).box.width for word in PANGRAM.split())


@pytest.mark.parametrize("height", [100, 36])
def test_text_that_fits_keeps_its_size(height: int) -> None:
    same = {"text": "Hi", "size": 30}
    assert drawn(same).box.height == 36
    fitted, plain = (drawn({**same, "fit": fit}, width=300, height=height) for fit in (True, False))
    assert np.array_equal(fitted.image.numpy(), plain.image.numpy())


def test_markup_is_text() -> None:
    marked, plain = drawn("<b>&amp;</b>"), drawn("&")
    assert marked.box.width > 4 * plain.box.width
    assert drawn('<span size="1">x').box.width > drawn("x").box.width


def test_spans_are_parts_of_one_text() -> None:
    whole = drawn({"text": PANGRAM}, width=300)
    parts = [{"text": PANGRAM[:13]}, {"text": PANGRAM[13:30], "font": "Inter"}, {"text": PANGRAM[30:]}]
    assert np.array_equal(drawn({"spans": parts}, width=300).image.numpy(), whole.image.numpy())
    parts[1] |= {"color": "FF0000", "font": "Inter Black"}
    made = drawn({"spans": parts}, width=300).image.numpy()
    assert ((made[..., 0] > 200) & (made[..., 3] > 200)).any()
    assert ((made[..., 0] < 50) & (made[..., 3] > 200)).any()


def test_weights_and_styles_differ() -> None:
    fonts = (
        "Inter",
        "Inter Thin",
        "inter semi-bold",
        "Inter 650",
        "Inter Bold",
        "Inter Black Italic",
        "Noto Sans",
    )
    made = [drawn({"text": "Hamburg", "font": font}).image.numpy() for font in fonts]
    inks = [int(one[..., 3].astype(int).sum()) for one in made]
    assert len(set(inks)) == len(inks)
    assert inks[1] < inks[0] < inks[2] < inks[3] < inks[4] < inks[5]


@pytest.mark.parametrize(
    ("marked", "alike", "font"),
    [
        ("o\u030b d\u0331", "\u0151 \u1e0f", "Inter"),  # as names of files on macOS are written
        ("n\u0325Z\u0336", "n\u0325Z\u0336", "Noto Sans"),
        ("1\ufe0f\u20e3", "1\u20e3", "Noto Emoji"),
    ],
)
def test_marks_are_drawn_in_one_font_with_their_letters(marked: str, alike: str, font: str) -> None:
    made = drawn({"text": marked, "font": "Inter"}).image.numpy()
    assert np.array_equal(made, drawn({"text": alike, "font": font}).image.numpy())


def test_an_outline_reaches_its_width_in_all_directions() -> None:
    dot = np.zeros((41, 41), np.uint8)
    dot[20, 20] = 255
    dot[10, 30:33] = 128
    for width in (1.0, 3.0, 7.5):
        found = outlined(as_vips(dot), width).numpy()
        rows, columns = np.indices(dot.shape)
        reach = [np.hypot(rows - 20, columns - 20), *(np.hypot(rows - 10, columns - x) for x in (30, 31, 32))]
        inside = [np.clip(width + 1 - distance, 0, 1) for distance in reach]
        expected = np.maximum(255 * inside[0], 128 * np.maximum.reduce(inside[1:]))
        assert np.abs(found - expected).max() <= 2


def test_outline_shadow_and_background_lie_below_the_letters_in_this_order() -> None:
    asked = {
        "text": "Hi",
        "color": "FFFFFF",
        "outline": {"width": 4, "color": "FF0000"},
        "shadow": {"x": 30, "y": 0, "color": "FF00FF00"},
        "background": {"color": "0000FF", "padding": 50, "radius": 20},
    }
    made, plain = drawn(asked), drawn("Hi")
    assert made.box == (plain.box.width + 100, plain.box.height + 100)
    assert made.margin == 0
    pixels = made.image.numpy()
    assert pixels[0, 0, 3] == 0
    assert tuple(pixels[40, 5]) == (0, 0, 255, 255)
    for color in ((255, 255, 255), (255, 0, 0), (0, 255, 0), (0, 0, 255)):
        assert (pixels[..., :3] == color).all(-1).sum() > 20
    letters = np.pad(alpha(plain), 50)
    assert (pixels[letters == 255][:, :3] >= 250).all()


def test_what_reaches_over_the_box_moves_nothing() -> None:
    plain, shadowed = drawn("Hi"), drawn({"text": "Hi", "shadow": {"x": -20, "y": 9, "blur": 8}})
    assert shadowed.box == plain.box
    assert shadowed.margin >= 20


SCRIPTS = "Latin ἑλληνικά Русский\nالعربية שלום\nहिन्दी ไทย 中文 日本語 한국어 ✓ 🎉"


def test_nine_scripts_look_as_they_should(check_golden: GoldenCheck) -> None:
    pytest.importorskip("manimgx_fonts_cjk")
    made = drawn({"text": SCRIPTS, "size": 36, "font": "Noto Sans"}, width=640).image
    check_golden("layers-scripts", made.flatten(background=255).extract_band(0, n=3), 0.01)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ({"font": "Arial"}, "text.font"), ({"font": "Inter Wavy"}, "text.font"), ({"font": ""}, "text.font"),
        ({"text": "a\U00013000b"}, "text.text"), ({"text": "a\0b"}, "text.text"),
        ({"text": "a\tb"}, "text.text"),
        ({"text": "\u202eabc"}, "text.text"), ({"text": "\u2066abc"}, "text.text"),
        ({"text": " \n"}, "text.text"),
        ({"text": "\ud800"}, "text.text"), ({"text": "x" * 1_000_000}, "text.text"),
        ({"text": ""}, "text.text"),
        ({"text": "\u3164\ufe0f", "missing": "box"}, "text.text"),
        ({"text": "a\ufdd0"}, "text.text"), ({"text": "a\uffff"}, "text.text"),
        ({"text": None}, "text.text"), ({"text": 7}, "text.text"),
        ({"size": "0.1%"}, "text.size"), ({"size": 0}, "text.size"), ({"size": 10**6}, "text.size"),
        ({"text": "W" * 2000, "size": 60}, "text.text"), ({"lines": 0}, "text.lines"),
        ({"spans": [{"text": "a"}]}, "text.text"),
        ({"text": None, "spans": [{"text": "a"}, {"text": "b", "font": "Arial"}]}, "text.spans[1].font"),
        ({"text": None, "spans": [{"text": "a"}, {"text": "\U00013000"}]}, "text.spans[1].text"),
        ({"text": None, "spans": [{"text": "a"}] * 51}, "text.spans"),
        ({"outline": {"width": 1000, "color": "f00"}}, "text.outline.width"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_path(text: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError) as caught:
        drawn({"text": "Hello", **text})
    paths = [problem.path.removeprefix("layers[0].") for problem in caught.value.problems]
    assert paths == [path]


def test_letters_that_no_font_has_are_told_or_drawn_as_boxes() -> None:
    with pytest.raises(SpecError, match=r"got '\U00013000' \(U\+13000\), '\U00012000' \(U\+12000\)$"):
        drawn("a\U00013000b\U00012000")
    boxed = drawn({"text": "\U00013000", "missing": "box"})
    assert boxed.box.width > 10


@pytest.mark.parametrize("sides", [{"width": "40%"}, {"width": 60, "height": 50}, {"height": "50%"}])
def test_a_text_may_have_the_sides_of_its_layer(sides: dict[str, Any]) -> None:
    text, place = {"text": "Autumn leaves are falling", "size": 12}, {"gravity": "top-left"}
    pixels = [
        imgsvc.process(np.full((120, 160, 3), 255, np.uint8), {"layers": [place | layer]}).to_numpy()
        for layer in ({"text": text, **sides}, {"text": {**text, **sides}}, {"text": text})
    ]
    assert np.array_equal(pixels[0], pixels[1])
    assert not np.array_equal(pixels[0], pixels[2])


def test_a_side_of_a_text_is_named_in_errors() -> None:
    request = {"layers": [{"text": {"text": "a", "size": 12, "width": "1%"}}]}
    with pytest.raises(imgsvc.SpecError) as refused:
        imgsvc.process(np.zeros((20, 20, 3), np.uint8), request)
    assert [problem.path for problem in refused.value.problems] == ["layers[0].text.width"]
