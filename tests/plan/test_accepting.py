"""The format ``auto`` against what an HTTP ``Accept`` header says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.settings import MOST_EXAMINED
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan.encoding import choose_formats, exact_formats
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Output

NAMES = ("avif", "webp", "jpg", "png", "gif", "apng")
CLASSIC = ("jpg", "png", "gif")


def chosen(accept: str, *, animated: bool = False, alpha: bool = False) -> str:
    info = ImageInfo(
        format="gif", width=60, height=40, colorspace="srgb", depth=8, bytes=999, frames=9 if animated else 1
    )
    [row], _ = choose_formats(Output(format="auto"), info, accept=accept, alpha=alpha)
    return row.name


def test_all_frames_count_in_what_may_be_a_graphic() -> None:
    for frames in (1, 64):
        info = ImageInfo(format="gif", width=9, height=9, colorspace="srgb", bytes=999, frames=frames)
        most = MOST_EXAMINED // frames // 1000
        found = [
            exact_formats(Output(format="auto"), info, Size(1000, height), photograph=False)
            for height in (most, most + 1)
        ]
        assert [bool(rows) for rows in found] == [True, False]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("image/avif,image/webp,image/apng,image/*,*/*;q=0.8", "avif"),
        ("image/avif;q=0,image/png", "png"),
        ("image/avif;q=0.2,image/webp;q=0.9", "webp"),
        ("image/avif; Q=0.0 , IMAGE/WEBP", "webp"),
        ("image/png", "png"),
        ("image/gif", "gif"),
        ("*/*", "jpg"),
        ("image/*", "jpg"),
        ("image/jpeg;q=0,*/*", "png"),
        ("*/*;q=0.5,image/png", "png"),
        ("image/png;q=0.5,image/*", "jpg"),
        ("image/jpeg;q=0", "png"),
        ("image/avif;q=nan,image/png;q=1.5,image/webp;q=0.001", "webp"),
        ("image/avif;level=1;q=0,image/webp;level=1", "webp"),
        ("text/html", "jpg"),
        ("", "jpg"),
    ],
)
def test_a_still_picture(accept: str, expected: str) -> None:
    assert chosen(accept) == expected


@pytest.mark.parametrize(
    ("accept", "animated", "alpha", "expected"),
    [
        ("image/avif,image/webp", True, False, "avif"),
        ("image/avif,*/*", True, False, "avif"),
        ("image/jpeg,image/gif;q=0.1", True, False, "gif"),
        ("image/apng,image/png", True, False, "apng"),
        ("image/jpeg", True, False, "jpg"),
        ("*/*", False, True, "png"),
        ("image/jpeg,image/png;q=0.1", False, True, "png"),
        ("image/jpeg", False, True, "jpg"),
    ],
)
def test_what_the_picture_needs_comes_first(accept: str, animated: bool, alpha: bool, expected: str) -> None:
    assert chosen(accept, animated=animated, alpha=alpha) == expected


WEIGHTS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 1000), min_size=1)


@given(weights=WEIGHTS, animated=st.booleans(), alpha=st.booleans())
def test_nothing_else_than_what_is_accepted(weights: dict[str, int], animated: bool, alpha: bool) -> None:
    """Where anything is; and of what serves the picture alike, what is preferred."""
    header = ", ".join(f"{FORMATS[name].media_type};q={q / 1000:.3f}" for name, q in weights.items())
    name = chosen(header, animated=animated, alpha=alpha)
    if any(weights.values()):
        assert weights[name] > 0
    elif len(weights) < len(NAMES):
        assert name not in weights
    full = ("avif", "webp", "jpg", "png", "apng")
    if not animated and not alpha and any(weights.get(other) for other in full):
        assert weights[name] == max(weights.get(other, 0) for other in full)


@given(excluded=st.sets(st.sampled_from(CLASSIC), max_size=2), rest=st.sampled_from(["*/*", "image/*"]))
def test_wildcards_stand_for_what_every_client_shows(excluded: set[str], rest: str) -> None:
    header = ",".join([rest, *(f"{FORMATS[name].media_type};q=0" for name in excluded)])
    assert chosen(header) in set(CLASSIC) - excluded


@given(st.text())
def test_any_header_gives_a_format(header: str) -> None:
    assert chosen(header) in NAMES
