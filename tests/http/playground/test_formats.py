"""The comparison of formats in the playground."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from tests.http.playground.conftest import Open
from tests.http.playground.page import asked, expect_summary, number


def size_of(page: Any, format_: str) -> str:
    """The size of a format in the comparison, once it is known."""
    cell = page.locator(f"[data-format={format_}] td.amount").first
    cell.filter(has_not_text="…").wait_for()
    return str(cell.inner_text())


def test_formats_are_compared(open_page: Open) -> None:
    page = open_page('request={"resize":{"width":160}}').page
    page.get_by_role("tab", name="Formats").click()
    page.locator(".formats[aria-busy=false]").wait_for()
    cells = {
        row.get_attribute("data-format"): row.locator("td.amount").all_inner_texts()
        for row in page.locator(".formats tbody").all()
    }
    assert list(cells) == ["avif", "jxl", "webp", "jpg"]
    for size, look, encoding in cells.values():
        assert re.fullmatch(r"[\d.]+ (B|kB)", size)
        assert 40 < float(look) < 95
        assert encoding.endswith(" ms")
    page.locator("[data-format=webp]").get_by_role("button", name="Use", exact=True).click()
    expect_summary(page, "webp")


def test_a_format_is_shown_beside_the_original_at_a_click(open_page: Open) -> None:
    opened = open_page('request={"resize":{"width":160}}')
    page = opened.page
    page.get_by_role("tab", name="Formats").click()
    page.locator(".formats[aria-busy=false]").wait_for()
    shown = {page.get_by_alt_text("Result").get_attribute("src")}
    for name in ("avif", "webp"):
        row = page.get_by_role("button", name=name, exact=True)
        row.click()
        expect_summary(page, name, size_of(page, name))
        assert row.get_attribute("aria-pressed") == "true"
        label = f"{name} {size_of(page, name)}"
        assert page.locator(".labels span").all_inner_texts() == ["Original", label]
        shown.add(page.get_by_alt_text("Result").get_attribute("src"))
    assert len(shown) == 3
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "portrait-result.webp"
    page.keyboard.press("Escape")
    expect_summary(page, "jpg", size_of(page, "jpg"))
    assert page.locator(".labels span").all_inner_texts() == ["Original", "Result"]
    page.get_by_role("button", name="avif", exact=True).click()
    expect_summary(page, "avif")
    number(page, "resize-width").fill("80")
    page.keyboard.press("Tab")
    expect_summary(page, "jpg", "80 × ")
    page.locator(".formats[aria-busy=false]").wait_for()
    page.get_by_role("button", name="webp", exact=True).click()
    expect_summary(page, "webp")
    page.get_by_role("tab", name="Code").click()
    expect_summary(page, "jpg")
    assert asked(page) == {"resize": {"width": 80}}
    assert opened.troubles == []


def test_animations_are_compared_in_formats_that_move(open_page: Open) -> None:
    opened = open_page('example=day.gif&request={"resize":{"width":64}}')
    page = opened.page
    expect_summary(page, "gif", "64 × ")
    bytes_of_result = page.locator(".summary").inner_text()
    page.get_by_role("tab", name="Formats").click()
    page.locator("[data-format=apng]").wait_for()
    page.locator(".formats[aria-busy=false]").wait_for()
    rows = page.locator(".formats tbody").all()
    assert [row.get_attribute("data-format") for row in rows] == ["webp", "gif", "apng", "avif"]
    assert page.locator(".formats tbody").get_by_text("Only the first of").count() == 0
    assert size_of(page, "gif") in bytes_of_result
    page.locator("[data-format=webp]").get_by_role("button", name="Use", exact=True).click()
    expect_summary(page, "webp", size_of(page, "webp"))
    assert page.locator(".panel > .loss").count() == 0
    page.get_by_label("Find a parameter").fill("format")
    page.locator("[data-param=format] select").select_option("heic")
    page.locator("[data-format=heic]").get_by_text("Only the first of").wait_for()
    page.locator(".source select").select_option("portrait.jpg")
    page.locator("[data-format=jpg]").wait_for()
    assert opened.troubles == []


def test_transparency_is_compared_with_png_and_warned_about(open_page: Open) -> None:
    page = open_page('example=emblem.png&request={"resize":{"width":64}}').page
    page.get_by_role("tab", name="Formats").click()
    page.locator(".formats[aria-busy=false]").wait_for()
    rows = {row.get_attribute("data-format"): row for row in page.locator(".formats tbody").all()}
    assert list(rows) == ["avif", "jxl", "webp", "png", "jpg"]
    lossy = [name for name, row in rows.items() if row.get_by_text("has no transparency").count()]
    assert lossy == ["jpg"]
    rows["jpg"].get_by_role("button", name="Use", exact=True).click()
    expect_summary(page, "jpg")
    page.get_by_role("tab", name="Result").click()
    page.locator(".panel > .loss").filter(has_text="has no transparency").wait_for()


def test_formats_are_compared_by_some_numbers_and_no_picture_is_loaded(open_page: Open) -> None:
    """At 50 kB/s they would take long: the service scores them, and sends what is looked at."""
    page = open_page('request={"resize":{"width":160}}', own=True).page
    page.locator(".stage[aria-busy=false]").wait_for()
    finished: list[Any] = []
    page.on("requestfinished", lambda request: finished.append(request))
    page.get_by_role("tab", name="Formats").click()
    page.locator(".formats[aria-busy=false]").wait_for()
    asked_for = {one.url.split("/playground/")[1] for one in finished} - {"icon.svg"}  # of the tab
    assert asked_for == {"scores/portrait.jpg"}
    assert sum(one.sizes()["responseBodySize"] for one in finished) < 10_000
    with page.expect_request_finished(lambda request: "previews" in request.url):
        page.get_by_role("button", name="webp", exact=True).click()
    expect_summary(page, "webp")
    assert sum("previews" in one.url for one in finished) == 1


def test_rows_are_of_the_request_that_is_shown(open_page: Open) -> None:
    """Sizes of another request do not stay until the new ones are known."""
    page = open_page('request={"resize":{"width":160}}').page
    page.get_by_role("tab", name="Formats").click()
    page.locator(".formats[aria-busy=false]").wait_for()
    page.route("**/playground/scores/*", lambda route: None)
    number(page, "resize-width").fill("80")
    page.keyboard.press("Tab")
    assert set(page.locator(".formats td.amount").all_inner_texts()) == {"…", ""}


def test_formats_are_compared_as_they_are_asked_for(open_page: Open) -> None:
    """What a format has not is left out; what it has, decides its row, as it decides the result."""
    output = {"format": "webp", "lossless": True, "effort": 0, "flatten": True}
    page = open_page(f"request={quote(json.dumps({'resize': {'width': 160}, 'output': output}))}").page
    page.get_by_role("tab", name="Formats").click()
    page.locator(".formats[aria-busy=false]").wait_for()
    expect_summary(page, "webp", size_of(page, "webp"))
    assert page.locator("[data-format=webp] td.amount").nth(1).inner_text() == "100.0"
    avif, jpg = (
        page.locator(f"[data-format={name}]").get_by_role("button", name="Use", exact=True)
        for name in ("avif", "jpg")
    )
    avif.click()
    expect_summary(page, "avif", size_of(page, "avif"))
    assert asked(page)["output"] == {**output, "format": "avif"}
    page.get_by_role("tab", name="Formats").click()
    jpg.click()
    expect_summary(page, "jpg")
    assert asked(page)["output"] == {"format": "jpg", "effort": 0, "flatten": True}


def test_a_format_that_cannot_do_what_is_asked_says_why(open_page: Open) -> None:
    request = {"resize": {"width": 64}, "output": {"format": "webp", "max_bytes": 6000}}
    page = open_page(f"example=day.gif&request={quote(json.dumps(request))}").page
    page.get_by_role("tab", name="Formats").click()
    page.locator("[data-format=gif]", has_text="does not fit into 6000 bytes").wait_for()
    expect_summary(page, "webp", size_of(page, "webp"))
