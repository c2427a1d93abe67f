"""Scripts of the documentation: tables on a phone, and the search in files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import chromium

STATIC = Path(__file__).parent.parent / "docs" / "_static"
NUMBERS = ["JPEG 6 MP to 720 x 588, blurred by 3 pixels", "imgsvc", "17.92", "2%", "38,622", "87.0", "1.01"]
REQUESTS = [
    "rgb.png",
    '{"rotate": {"angle": 90}, "output": {"format": "jpg", "encoding": "baseline"}}',
    "139",
    "64",
]
TEXTS = [
    "`server.idle_seconds`",
    "How long a connection stays open until its next request arrives.",
    "s",
    "75",
]
FIGURES = ["1.05", "92 : 74", "a sentence about signed pictures from the cache, over TLS, on two cores"]


@pytest.fixture(scope="module")
def phone() -> Iterator[Any]:
    with chromium() as browser:
        yield browser.new_context(viewport={"width": 390, "height": 800}).new_page()


def table(row: list[str]) -> str:
    """A table of forty rows, as Sphinx and Furo write it, with numbers at the right."""
    head = "".join(f"<th><p>column {number}</p></th>" for number, _ in enumerate(row))
    cells = "".join(
        f'<td style="text-align: {"right" if cell[0].isdigit() else "left"}"><p>{cell}</p></td>'
        for cell in row
    )
    return (
        '<div class="table-wrapper" style="overflow-x: auto"><table class="docutils">'
        f"<thead><tr>{head}</tr></thead><tbody>{f'<tr>{cells}</tr>' * 40}</tbody></table></div>"
    )


def shown(phone: Any, body: str) -> dict[str, Any]:
    """Show a page with the styles and scripts of the site, and measure its table."""
    style = (STATIC / "pictures.css").read_text(encoding="utf-8")
    script = (STATIC / "tables.js").read_text(encoding="utf-8")
    phone.goto("about:blank")
    phone.set_content(f"<style>{style}</style><article>{body}</article><script>{script}</script>")
    found: dict[str, Any] = phone.evaluate("""() => {
        const table = document.querySelector("table"), place = table.parentElement;
        const left = (part) => part.getBoundingClientRect().left;
        place.scrollLeft = 200;
        return {
            names: table.className.split(" "), height: table.offsetHeight,
            scrolls: place.scrollWidth > place.clientWidth, page: document.documentElement.scrollWidth,
            first: left(table.tBodies[0].rows[0].cells[0]) - left(place),
        };
    }""")
    return found


@pytest.mark.parametrize("row", [NUMBERS, REQUESTS])
def test_tables_of_numbers_scroll_below_their_first_column(row: list[str], phone: Any) -> None:
    found = shown(phone, table(row))
    assert "numbers" in found["names"]
    assert found["scrolls"]
    assert found["page"] <= 390
    assert found["first"] == 0, "the first column scrolls away"
    assert found["height"] < 40 * 90


def test_tables_of_texts_become_lists(phone: Any) -> None:
    found = shown(phone, table(TEXTS))
    assert "stacked" in found["names"]
    assert not found["scrolls"]


def test_lists_leave_out_cells_that_say_nothing(phone: Any) -> None:
    shown(phone, table([*TEXTS, "–"]))
    assert phone.locator("td", has_text="–").count() == 40
    assert not phone.locator("td", has_text="–").first.is_visible()
    assert phone.locator("td", has_text="75").first.is_visible()


def test_figures_of_the_first_page_stay_a_table(phone: Any) -> None:
    found = shown(phone, f'<div class="figures">{table(FIGURES)}</div>')
    assert found["names"] == ["docutils"]
    assert not found["scrolls"]


def test_the_gallery_of_the_first_page_fills_its_columns(phone: Any) -> None:
    picture = "<figure><img width=150 height=150><figcaption>temperature 70</figcaption></figure>"
    shown(phone, f'<div class="gallery"><div class="strip">{picture * 4}</div></div>{table(FIGURES)}')
    widths = phone.evaluate(
        """() => [...document.querySelectorAll("img")].map((image) => image.offsetWidth)"""
    )
    whole = phone.evaluate("document.querySelector('.gallery').offsetWidth")
    assert [width > whole / 3 - 10 for width in widths] == [True] * 4
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_folded_table_is_arranged_when_it_is_opened(phone: Any) -> None:
    shown(phone, f"<details><summary>All rows</summary>{table(NUMBERS)}</details>")
    phone.locator("summary").click()
    phone.locator("table.numbers").wait_for()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_of_performance_folds_its_long_tables() -> None:
    text = (STATIC.parent / "performance.md").read_text(encoding="utf-8")
    unfolded = re.sub(r"^<details>$.*?^</details>$", "", text, flags=re.MULTILINE | re.DOTALL)
    tables = re.findall(r"^\|.*\n\| -.*\n((?:\|.*\n)+)", unfolded, re.MULTILINE)
    assert tables
    assert max(rows.count("\n") for rows in tables) <= 15


@pytest.mark.parametrize("address", ["file", "https"])
def test_the_search_quotes_no_pages_that_a_browser_does_not_load(
    address: str, phone: Any, tmp_path: Path
) -> None:
    page = tmp_path / "search.html"
    script = (STATIC / "scrolled.js").read_text(encoding="utf-8")
    options = "const DOCUMENTATION_OPTIONS = { SHOW_SEARCH_SUMMARY: true };"
    page.write_text(f"<script>{options}</script><script>{script}</script>", encoding="utf-8")
    phone.route("https://docs.example/", lambda route: route.fulfill(path=page))
    phone.goto(page.as_uri() if address == "file" else "https://docs.example/")
    assert phone.evaluate("DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY") == (address == "https")
