"""The playground in windows of all sizes, and for everybody."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.http.playground.conftest import Open, until
from tests.http.playground.page import PICTURES, WEB, number, open_all_groups
from tests.support import requires

METADATA = "x-svc-metadata"


def test_the_page_is_as_high_as_the_window(open_page: Open) -> None:
    page = open_page().page
    open_all_groups(page)
    number(page, "vignette-value").wait_for()
    assert page.evaluate("document.querySelector('.controls').scrollHeight") > 2000
    assert page.evaluate("document.documentElement.scrollHeight") == 800


@pytest.mark.parametrize(("width", "height"), [(844, 390), (1024, 500)])
def test_the_results_can_be_reached_in_low_windows(width: int, height: int, open_page: Open) -> None:
    page = open_page(viewport={"width": width, "height": height}).page
    page.mouse.move(width / 4, height / 2)
    page.mouse.wheel(0, 5000)
    bottom = "document.querySelector('.results').getBoundingClientRect().bottom"
    until(page, f"{bottom} <= innerHeight")
    end = page.evaluate(f"{bottom} + scrollY")
    assert page.evaluate("document.documentElement.scrollHeight") <= max(height, end) + 1


def test_the_source_has_one_line(open_page: Open) -> None:
    page = open_page().page
    parts = page.locator(".source > *:not(.hidden)").all()
    boxes = [part.bounding_box() for part in parts]
    middles = [box["y"] + box["height"] / 2 for box in boxes]
    assert max(middles) - min(middles) < 10
    assert page.locator(".source").evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.parametrize("width", [800, 1024])
def test_the_source_has_room_in_narrow_windows(width: int, open_page: Open) -> None:
    page = open_page(viewport={"width": width, "height": 800}).page
    assert page.locator(".source").evaluate("one => one.scrollWidth <= one.clientWidth")
    facts = page.locator(".source-facts")
    assert facts.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert page.get_by_label("URL of a picture").bounding_box()["width"] > 80


@pytest.mark.parametrize("width", [1280, 390])
def test_the_size_of_a_source_is_in_sight_beside_any_name(width: int, open_page: Open) -> None:
    page = open_page("example=day.gif", viewport={"width": width, "height": 800}).page
    facts = page.locator(".source-facts")
    inside = """one => {
        const [all, part] = [one.parentElement.getBoundingClientRect(), one.getBoundingClientRect()];
        return part.left >= all.left && part.right <= all.right && one.scrollWidth <= one.clientWidth;
    }"""
    facts.locator("span", has_text="24 frames").wait_for()
    assert facts.locator("strong").inner_text() == "day.gif"
    assert facts.locator("strong, span").evaluate_all(f"all => all.every({inside})")
    data = (PICTURES / "day.gif").read_bytes()
    file = {"name": f"{'long' * 30}.gif", "mimeType": "image/gif", "buffer": data}
    page.get_by_label("Picture file").set_input_files(file)
    facts.locator("strong", has_text="longlong").wait_for()
    assert facts.locator("span").evaluate(inside)
    assert page.locator(".source").evaluate("one => one.scrollWidth <= one.clientWidth")


def test_the_url_has_a_line_of_its_own_on_phones(open_page: Open) -> None:
    page = open_page("example=cat.jpg", ready=False, viewport={"width": 390, "height": 844}).page
    page.get_by_role("alert").wait_for()
    assert page.get_by_label("URL of a picture").bounding_box()["width"] > 200


def test_the_size_of_the_result_is_in_sight_of_the_controls_on_phones(open_page: Open) -> None:
    page = open_page(viewport={"width": 390, "height": 844}).page
    size = page.locator(".zoom .size")
    before = size.inner_text()
    quality = page.locator("[data-param=quality] input[type=range]")
    quality.scroll_into_view_if_needed()
    quality.press("End")
    until(page, f"document.querySelector('.zoom .size').innerText !== {json.dumps(before)}")
    for item in (size, quality):
        box = item.bounding_box()
        assert 0 <= box["y"] <= 844 - box["height"]
        assert 0 <= box["x"] <= 390 - box["width"]
    assert size.inner_text() in page.locator(".summary").inner_text()


def test_the_bar_shows_each_time_by_its_share(open_page: Open) -> None:
    def with_a_fetched_layer(route: Any) -> None:
        answer = route.fetch()
        told = json.loads(answer.headers[METADATA])
        told["timing"] |= {"fetch": 500, "decode": 500}
        route.fulfill(response=answer, headers={**answer.headers, METADATA: json.dumps(told)})

    page = open_page(ready=False).page
    page.route("**/previews/*", with_a_fetched_layer)
    page.reload()
    fetched, decoded = (page.locator(f".bar .{phase}").bounding_box() for phase in ("fetch", "decode"))
    assert fetched["width"] == pytest.approx(decoded["width"], abs=1)


def test_the_tools_stand_in_one_row_on_phones(open_page: Open) -> None:
    page = open_page(viewport={"width": 390, "height": 844}).page
    tools = page.get_by_role("toolbar", name="Request").locator("> button, > a").all()
    places = [tool.bounding_box() for tool in tools]
    assert len(places) == 6
    assert len({place["y"] for place in places}) == 1
    assert max(place["x"] + place["width"] for place in places) <= 390


def test_the_zoom_has_room_at_both_sides_of_a_small_phone(open_page: Open) -> None:
    page = open_page('request={"output":{"quality":80}}', viewport={"width": 320, "height": 640}).page
    places = [part.bounding_box() for part in page.locator(".zoom > *").all() if part.is_visible()]
    assert min(place["x"] for place in places) >= 6
    assert max(place["x"] + place["width"] for place in places) <= 320 - 6
    assert page.locator(".zoom .size").bounding_box()["height"] < 24


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_everybody_can_use_it(scheme: str, width: int, open_page: Open) -> None:
    """axe finds nothing in any tab, and nothing is wider than the window."""
    axe = WEB / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.is_file():
        requires.missing("axe-core is not installed (npm --prefix web ci)")
    opened = open_page(
        'request={"adjust":{"exposure":20},"resize":{"width":120}}',
        viewport={"width": width, "height": 844},
        color_scheme=scheme,
        bypass_csp=True,
    )
    page = opened.page
    page.add_script_tag(path=str(axe))
    open_all_groups(page)
    for tab in ("Result", "Formats", "Code"):
        page.get_by_role("tab", name=tab).click()
        if tab == "Formats":
            page.locator(".formats[aria-busy=false]").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found = page.evaluate("axe.run().then(result => result.violations)")
        assert not found, json.dumps([(item["id"], item["nodes"][0]["html"]) for item in found], indent=1)
    page.get_by_role("button", name="Presets").click()
    found = page.evaluate("axe.run().then(result => result.violations)")
    assert not found, json.dumps([(item["id"], item["nodes"][0]["html"]) for item in found], indent=1)
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == (scheme == "dark")
    assert opened.troubles == []
