"""Bytes against look in the playground: the chart, its points, and two formats at the same look."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.http.playground.conftest import Open, until
from tests.http.playground.page import asked, expect_summary, number

SMALL = 'request={"resize":{"width":160}}'
DRAWN = ("avif", "jxl", "webp", "jpg")


def open_formats(page: Any, *, whole: bool = True) -> None:
    page.get_by_role("tab", name="Formats").click()
    if whole:
        page.locator(".formats[aria-busy=false]").wait_for()


def look_slider(page: Any) -> Any:
    return page.locator(".look-slider input")


def set_look(page: Any, look: int) -> None:
    """Move the slider by its keys."""
    at = int(look_slider(page).input_value())
    for _ in range(abs(look - at)):
        look_slider(page).press("ArrowRight" if look > at else "ArrowLeft")


def at_look(page: Any, format_: str) -> Any:
    return page.get_by_role("button", name=f"Use {format_} at look")


def scored(page: Any) -> list[dict[str, Any]]:
    """The bodies of all requests for scores from now on."""
    found: list[dict[str, Any]] = []

    def note(request: Any) -> None:
        if "/playground/scores/" in request.url:
            found.append(json.loads(request.post_data))

    page.on("request", note)
    return found


def labels(page: Any) -> list[str]:
    return [str(text) for text in page.locator(".labels span").all_inner_texts()]


def test_each_format_with_a_look_has_a_curve(open_page: Open) -> None:
    opened = open_page("example=emblem.png&" + SMALL)
    page = opened.page
    open_formats(page)
    assert page.locator(".curve").count() == len(DRAWN)
    for name in DRAWN:
        assert page.locator(f".mark.of-{name}:not(.asked)").count() >= 3
        assert page.locator(f".mark.asked.of-{name}").count() == 1
    assert page.locator(".mark.asked.of-png").get_attribute("title").endswith("look 100.0")
    described = page.get_by_role("img", name="Bytes against look").get_attribute("aria-label")
    assert all(f"{name} " in described for name in DRAWN)
    assert opened.troubles == []


def test_the_first_points_are_shown_before_the_others_are_known(open_page: Open) -> None:
    page = open_page(SMALL).page
    held: list[Any] = []

    def hold(route: Any) -> None:
        body = json.loads(route.request.post_data)
        is_last = body["looks"] is not None and body["request"]["output"]["format"] != "avif"
        held.append(route) if is_last else route.continue_()

    page.route("**/playground/scores/*", hold)
    open_formats(page, whole=False)
    page.locator(".curve.of-avif").wait_for()
    assert page.locator(".curve").count() == 1
    assert page.locator(".mark.asked").count() == len(DRAWN)
    assert page.locator(".formats").get_attribute("aria-busy") == "true"
    at_look(page, "avif").wait_for()
    assert at_look(page, "jpg").count() == 0


def test_a_curve_is_computed_once_for_a_picture(open_page: Open) -> None:
    """A change of the quality asks for the rows only, and what is known already for nothing."""
    page = open_page(SMALL, own=True).page
    calls = scored(page)
    open_formats(page)
    assert sorted(call["request"]["output"]["format"] for call in calls if call["looks"]) == sorted(DRAWN)
    calls.clear()
    number(page, "quality").fill("50")
    page.keyboard.press("Tab")
    assert page.locator(".curve").count() == len(DRAWN)
    page.locator(".formats[aria-busy=false]").wait_for()
    assert [call["looks"] for call in calls] == [None] * len(DRAWN)
    calls.clear()
    page.keyboard.press("Control+z")
    page.locator(".formats[aria-busy=false]").wait_for()
    assert calls == []


@pytest.mark.parametrize("change", ["operations", "picture", "tab"])
def test_a_change_cancels_what_is_computed(change: str, open_page: Open) -> None:
    page = open_page(SMALL).page
    held: list[Any] = []

    def hold_the_first(route: Any) -> None:
        route.continue_() if held else held.append(route)

    # The route stays: without it, the browser would send the request that is held.
    page.route("**/playground/scores/*", hold_the_first)
    with page.expect_request("**/playground/scores/portrait.jpg") as asked:
        open_formats(page, whole=False)
    with page.expect_event("requestfailed", lambda request: request == asked.value):
        if change == "operations":
            number(page, "resize-width").fill("80")
            page.keyboard.press("Tab")
        elif change == "picture":
            page.locator(".source select").select_option("emblem.png")
        else:
            page.get_by_role("tab", name="Code").click()
    if change != "tab":
        page.locator(".formats[aria-busy=false]").wait_for()
        assert page.locator(".curve").count() == len(DRAWN)


def test_a_point_is_chosen_with_the_keyboard(open_page: Open) -> None:
    opened = open_page('request={"resize":{"width":160},"output":{"format":"jpg","quality":60,"effort":3}}')
    page = opened.page
    open_formats(page)
    assert look_slider(page).get_attribute("aria-valuetext") == "70, good"
    set_look(page, 65)
    assert look_slider(page).get_attribute("aria-valuetext") == "65, fair"
    assert page.get_by_role("columnheader", name="At look 65").count() == 1
    told = at_look(page, "webp").inner_text()
    at_look(page, "webp").focus()
    page.keyboard.press("Enter")
    expect_summary(page, "webp")
    page.locator(".formats[aria-busy=false]").wait_for()
    row = page.locator("[data-format=webp] td.amount").all_inner_texts()
    assert 65 <= float(row[1]) < 71
    about, size = (float(text.removeprefix("≈ ").removesuffix(" kB")) for text in (told, row[0]))
    assert 0.7 * about < size < 1.1 * about  # it may be smaller, as color at full resolution is tried, too
    assert at_look(page, "webp").get_attribute("aria-pressed") == "true"
    assert asked(page)["output"] == {"format": "webp", "look": 65, "effort": 3}
    assert opened.troubles == []


def test_a_point_is_chosen_by_a_click_on_the_chart(open_page: Open) -> None:
    page = open_page(SMALL).page
    open_formats(page)
    plot = page.locator(".plot").bounding_box()
    marks = [mark.bounding_box() for mark in page.locator(".mark.of-jpg:not(.asked)").all()]
    middle = sorted(marks, key=lambda box: box["x"])[len(marks) // 2]
    x, y = middle["x"] + middle["width"] / 2, middle["y"] + middle["height"] / 2
    page.mouse.click(x, y)
    look = round(30 + 70 * (x - plot["x"]) / plot["width"])
    expect_summary(page, "jpg")
    assert abs(int(look_slider(page).input_value()) - look) <= 1
    output = asked(page)["output"]
    assert output["format"] == "jpg"
    assert abs(output["look"] - look) <= 1


def test_the_look_of_the_request_is_chosen_at_first(open_page: Open) -> None:
    page = open_page('request={"resize":{"width":160},"output":{"format":"jpg","look":55}}').page
    open_formats(page)
    assert look_slider(page).input_value() == "55"
    assert at_look(page, "jpg").get_attribute("aria-pressed") == "true"


def test_two_formats_are_shown_beside_each_other_at_the_same_look(open_page: Open) -> None:
    opened = open_page(SMALL)
    page = opened.page
    open_formats(page)
    page.get_by_role("button", name="Side by side").click()
    page.locator(".chart-head [role=status]", has_text="avif").wait_for()
    jpg, avif = labels(page)
    assert jpg.startswith("jpg ")
    assert avif.startswith("avif ")
    assert (
        page.locator(".chart-head [role=status]", has_text="avif")
        .inner_text()
        .startswith(f"{jpg}, {avif} (−")
    )
    expect_summary(page, *avif.split(" ", 1))
    sources = page.evaluate("[...document.querySelectorAll('.canvas img')].map(one => one.src)")
    assert len(set(sources)) == 2
    assert page.get_by_alt_text(jpg).get_attribute("src") == sources[1]
    page.get_by_label("with", exact=True).select_option("webp")
    page.locator(".chart-head [role=status]", has_text="webp").wait_for()
    before = labels(page)
    assert [label.split()[0] for label in before] == ["jpg", "webp"]
    set_look(page, 60)
    until(page, f"document.querySelector('.labels').innerText !== {json.dumps(chr(10).join(before))}")
    page.locator(".chart-head [role=status]", has_text="webp").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "portrait-result.webp"
    page.keyboard.press("Escape")
    expect_summary(page, "jpg")
    assert labels(page) == ["Original", "Result"]
    assert page.get_by_role("button", name="Side by side").get_attribute("aria-pressed") == "false"
    assert opened.troubles == []


def test_two_formats_are_compared_at_any_zoom(open_page: Open) -> None:
    """Zoomed, both are shown with all of their pixels."""
    page = open_page(viewport={"width": 800, "height": 700}).page
    open_formats(page, whole=False)
    page.get_by_role("button", name="Side by side").click()
    page.locator(".chart-head [role=status]", has_text="avif").wait_for()
    with page.expect_request(whole_preview("jpg")), page.expect_request(whole_preview("avif")):
        page.get_by_role("button", name="400 %").click()
    page.locator(".stage[aria-busy=false]").wait_for()
    assert page.locator(".canvas.pixels").count() == 1


def whole_preview(format_: str) -> Callable[[Any], bool]:
    """Return whether a request asks for all pixels of a result in a format."""

    def is_asked_for(request: Any) -> bool:
        if "/playground/previews/" not in request.url:
            return False
        body = json.loads(request.post_data)
        return (
            body["request"].get("output", {}).get("format") == format_ and body["window"]["width"] == 16_384
        )

    return is_asked_for


def test_a_look_that_a_format_cannot_reach_is_told_until_another_is_chosen(open_page: Open) -> None:
    page = open_page(SMALL).page
    open_formats(page)
    page.get_by_label("with", exact=True).select_option("webp")
    set_look(page, 95)
    page.get_by_role("button", name="Side by side").click()
    page.locator(".pair .error", has_text="A look of 95 cannot be reached").wait_for()
    assert labels(page) == ["Original", "Result"]
    set_look(page, 70)
    page.locator(".chart-head [role=status]", has_text="webp").wait_for()
    assert page.locator(".pair .error").count() == 0


def test_a_pair_ends_with_its_request(open_page: Open) -> None:
    page = open_page(SMALL).page
    open_formats(page)
    page.get_by_role("button", name="Side by side").click()
    page.locator(".chart-head [role=status]", has_text="avif").wait_for()
    number(page, "resize-width").fill("80")
    page.keyboard.press("Tab")
    expect_summary(page, "jpg", "80 × ")
    assert labels(page) == ["Original", "Result"]


def test_an_animation_has_curves_in_formats_that_move(open_page: Open) -> None:
    page = open_page('example=day.gif&request={"resize":{"width":48}}').page
    open_formats(page)
    assert page.locator(".curve.of-webp").count() == 1
    moving = page.locator(".formats tbody").filter(has_not_text="Only the first of").all()
    names = {row.get_attribute("data-format") for row in moving}
    drawn = {name for name in ("webp", "avif", "gif", "apng") if page.locator(f".curve.of-{name}").count()}
    assert drawn == names & {"webp", "avif"}


def test_why_a_format_has_no_curve_is_told(open_page: Open) -> None:
    page = open_page(SMALL).page

    def refuse(route: Any) -> None:
        body = json.loads(route.request.post_data)
        if body["looks"] and body["request"]["output"]["format"] == "avif":
            route.fulfill(status=503, json={"message": "Too many requests wait."})
        else:
            route.continue_()

    page.route("**/playground/scores/*", refuse)
    open_formats(page)
    page.locator(".compare .error", has_text="avif: Too many requests wait.").wait_for()
    assert page.locator(".curve").count() == len(DRAWN) - 1
