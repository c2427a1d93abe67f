"""Requests that the playground keeps: in links and in presets."""

from __future__ import annotations

from urllib.parse import quote

from tests.http.playground.conftest import Open, until
from tests.http.playground.page import asked, copied, expect_summary, number


def test_a_link_shows_the_same_again(open_page: Open) -> None:
    page = open_page("example=day.gif").page
    number(page, "resize-width").fill("64")
    page.keyboard.press("Tab")
    expect_summary(page, "64 × ")
    link = copied(page, "Copy link")
    assert "isk_" not in link
    again = open_page(link.partition("#")[2]).page
    expect_summary(again, "gif", "64 × ")
    assert asked(again) == {"resize": {"width": 64}}


def test_a_link_tells_what_the_page_cannot_show_of_it(open_page: Open) -> None:
    text = '{"resize":{"width":40},"border":{"width":8},"store":{"path":"a"}}'
    opened = open_page(f"request={quote(text)}")
    page = opened.page
    page.get_by_role("alert").get_by_text("border.width, store.path.").wait_for()
    page.wait_for_timeout(600)  # the page writes its address after 300 ms
    assert f"request={text}" in page.evaluate("decodeURIComponent(location.hash)")
    number(page, "resize-width").fill("50")
    page.keyboard.press("Tab")
    expect_summary(page, "50 × ")
    assert page.get_by_role("alert").count() == 0
    until(page, "location.hash.includes('50') && !location.hash.includes('border')")
    assert opened.troubles == []


def test_damaged_presets_of_the_browser_are_left_out(open_page: Open) -> None:
    opened = open_page()
    opened.page.evaluate("""localStorage.setItem('imgsvc-presets', '{"small": null}')""")
    opened.page.reload()
    opened.page.get_by_alt_text("Result").wait_for()
    opened.page.get_by_role("button", name="Presets").click()
    assert opened.page.locator(".presets li").count() == 0
    assert opened.troubles == []


def test_presets_are_kept_by_the_browser(open_page: Open) -> None:
    page = open_page('request={"resize":{"width":77}}').page
    page.get_by_role("button", name="Presets").click()
    page.get_by_label("Name of the preset").fill("narrow")
    page.get_by_role("button", name="Save the request").click()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Reset", exact=True).click()
    assert asked(page) == {}
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("button", name="narrow").first.click()
    assert asked(page) == {"resize": {"width": 77}}
