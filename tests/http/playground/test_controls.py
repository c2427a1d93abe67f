"""What the controls of the playground change, and how changes are undone."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

import imgsvc_core as imgsvc
from tests.http.playground.conftest import Open, until
from tests.http.playground.page import asked, expect_summary, number, open_all_groups, slider


def test_a_slider_changes_the_result(open_page: Open) -> None:
    opened = open_page()
    page = opened.page
    slider(page, "saturation").focus()
    page.keyboard.press("Home")
    assert number(page, "saturation").input_value() == "-100"
    colors = """(async () => {
        const image = await createImageBitmap(document.querySelector("img.after"));
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(0, 0, image.width, image.height);
        let most = 0;
        for (let at = 0; at < data.length; at += 4)
            most = Math.max(most, Math.abs(data[at] - data[at + 2]));
        return most;
    })()"""
    until(page, f"{colors}.then(most => most <= 2, () => false)")  # gray, once it is loaded
    page.get_by_role("button", name="Reset Saturation").click()
    assert number(page, "saturation").input_value() == ""
    assert opened.troubles == []


def test_one_touch_of_a_control_makes_a_valid_request(open_page: Open) -> None:
    """A filter whose other parameters are required gets values for them."""
    opened = open_page()
    page = opened.page
    page.get_by_label("Find a parameter").fill("motion")
    page.get_by_label("Find a parameter").fill("blur")
    slider(page, "blur-value").focus()
    page.keyboard.press("End")
    page.get_by_label("Find a parameter").fill("duotone")
    page.locator("[data-param=duotone-light] input[type=text]").fill("ffcc00")
    page.keyboard.press("Tab")
    page.get_by_label("Find a parameter").fill("mask")
    page.get_by_text("ellipse", exact=True).click()
    request = asked(page)
    assert request["filter"]["blur"] == {"mode": "gaussian", "value": 100}
    assert request["filter"]["duotone"]["light"] == "ffcc00"
    assert request["mask"] == {"shape": "ellipse"}
    imgsvc.parse(request)
    page.locator("[aria-busy=false].stage").wait_for()
    assert opened.troubles == []


def test_an_error_is_shown_where_it_belongs(open_page: Open) -> None:
    page = open_page().page
    number(page, "exposure").fill("500")
    page.keyboard.press("Tab")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "must be integer within -100 to 100 range" in alert.inner_text()
    assert "got 500" in page.locator("[data-param=exposure] .error").inner_text()
    assert number(page, "exposure").get_attribute("aria-invalid") == "true"
    page.get_by_role("button", name="Undo").click()
    alert.wait_for(state="detached")


@pytest.mark.parametrize(
    ("group", "option", "text"),
    [
        ("Adjust", "exposure", "500"),
        ("Monochrome", "monochrome-color", "12345"),
        ("Canvas", "canvas-ratio", "wide"),
    ],
    ids=["number", "color", "text"],
)
def test_what_is_typed_while_a_preview_ends_is_kept(
    group: str, option: str, text: str, open_page: Open
) -> None:
    page = open_page().page
    held: list[Any] = []
    page.route(
        "**/playground/previews/*", lambda route: held.append(route) if not held else route.continue_()
    )
    with page.expect_request("**/playground/previews/*"):
        slider(page, "contrast").press("End")
    page.get_by_label("Find a parameter").fill(group)
    control = page.locator(f"[data-param={option}]")
    field = control.locator("[type=number], [type=text]")
    field.fill(text)
    held[0].continue_()
    page.locator("[aria-busy=false].stage").wait_for()
    assert field.input_value() == text
    page.keyboard.press("Tab")
    control.locator(".error").filter(has_text=text).wait_for()
    assert field.input_value() == text


def test_what_is_no_number_is_an_error_until_there_is_one(open_page: Open) -> None:
    page = open_page().page
    control = page.locator("[data-param=exposure]")
    field = number(page, "exposure")
    field.click()
    page.keyboard.type("1e")
    page.keyboard.press("Tab")
    assert control.locator(".error").inner_text() == "must be a number"
    assert field.get_attribute("aria-invalid") == "true"
    assert asked(page) == {}
    field.fill("5")
    page.keyboard.press("Tab")
    assert asked(page) == {"adjust": {"exposure": 5}}
    page.get_by_role("button", name="Reset Exposure").click()
    assert control.locator(".error").count() == 0
    assert field.get_attribute("aria-invalid") == "false"


def test_an_error_goes_with_the_request_that_caused_it(open_page: Open) -> None:
    """At once, and not only with the next result."""
    page = open_page().page
    number(page, "exposure").fill("500")
    page.keyboard.press("Tab")
    page.get_by_role("alert").wait_for()
    held: list[Any] = []
    page.route("**/playground/previews/*", lambda route: held.append(route))
    with page.expect_request("**/playground/previews/*"):
        page.get_by_role("button", name="Undo").click()
    assert page.get_by_role("alert").count() == 0
    assert page.locator("[data-param=exposure] .error").count() == 0
    assert held


def test_a_service_that_comes_back_is_asked_again(open_page: Open) -> None:
    page = open_page().page
    page.route("**/playground/previews/*", lambda route: route.abort())
    number(page, "resize-width").fill("50")
    page.keyboard.press("Tab")
    page.get_by_role("alert").filter(has_text="cannot be reached").wait_for()
    page.unroute("**/playground/previews/*")
    expect_summary(page, "50 × ")
    assert page.get_by_role("alert").count() == 0


def test_the_first_click_into_a_number_selects_it_and_the_second_sets_the_cursor(open_page: Open) -> None:
    page = open_page('request={"resize":{"width":123}}').page
    field = number(page, "resize-width")
    field.click()
    page.keyboard.type("45")
    assert field.input_value() == "45"
    field.click()
    page.keyboard.press("End")
    page.keyboard.type("6")
    assert field.input_value() == "456"


def test_a_slider_without_a_value_looks_unset(open_page: Open) -> None:
    page = open_page().page
    page.get_by_label("Find a parameter").fill("quality")
    control = slider(page, "quality")
    assert control.get_attribute("aria-valuetext") == "unset"
    assert number(page, "quality").get_attribute("placeholder") == "unset"
    unset = page.locator("[data-param=quality] .slider.unset")
    assert unset.count() == 1
    control.press("End")
    unset.wait_for(state="detached")
    assert control.get_attribute("aria-valuetext") == "100"


def test_a_length_that_follows_the_other_one_looks_unset(open_page: Open) -> None:
    page = open_page("example=portrait.jpg").page
    height = slider(page, "resize-height")
    assert height.get_attribute("aria-valuetext") == "512 pixels"
    number(page, "resize-width").fill("200")
    page.keyboard.press("Tab")
    page.locator("[data-param=resize-height] .slider.unset").wait_for()
    assert height.get_attribute("aria-valuetext") == "unset"
    assert number(page, "resize-height").get_attribute("placeholder") == "unset"
    page.get_by_role("button", name="Reset Width").click()
    assert height.get_attribute("aria-valuetext") == "512 pixels"


def test_auto_means_one_thing(open_page: Open) -> None:
    """It is a value of formats and qualities, so what is not given is called otherwise."""
    page = open_page().page
    open_all_groups(page)
    options = page.locator("[data-param=format] option").all_inner_texts()
    assert options[0] == "as the source"
    assert options.count("auto") == 1
    assert "automatic" not in page.content()


def test_auto_is_what_a_page_gets(open_page: Open) -> None:
    page = open_page().page
    page.locator("[data-param=format] select").select_option("auto")
    expect_summary(page, "avif")


def test_format_and_quality_come_first_and_change_the_size_at_once(open_page: Open) -> None:
    page = open_page().page
    groups = page.locator(".group")
    assert groups.first.get_attribute("data-group") == "output"
    assert groups.nth(1).get_attribute("data-group") == "redact"
    params = groups.first.locator(".control")
    assert [params.nth(place).get_attribute("data-param") for place in (0, 1)] == ["format", "quality"]
    page.locator("[data-param=format] select").select_option("webp")
    expect_summary(page, "webp")
    size = page.locator(".summary").inner_text()
    slider(page, "quality").press("End")
    until(page, f"document.querySelector('.summary').innerText !== {json.dumps(size)}")


def test_touch_screens_show_what_a_parameter_means_while_it_is_used(open_page: Open) -> None:
    page = open_page(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844}).page
    meaning = page.locator("[data-param=quality] .doc")
    assert meaning.bounding_box()["height"] <= 1
    number(page, "quality").tap()
    until(page, "document.querySelector('[data-param=quality] .doc').offsetHeight > 10")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    number(page, "look").tap()
    until(page, "document.querySelector('[data-param=quality] .doc').offsetHeight <= 1")


def test_a_search_knows_other_words(open_page: Open) -> None:
    page = open_page().page
    search = page.get_by_label("Find a parameter")
    for words, option in {
        "grayscale": "saturation",
        "Black and white": "monochrome-value",
        "colour": "monochrome-color",
        "round corners": "mask-radius",
        "webp": "format",
        "jpeg": "format",
        "thumbnail": "resize-width",
        "mirror": "flip-horizontal",
        "logo": "watermark-id",
        "exif": "metadata",
        "file size": "max-bytes",
    }.items():
        search.fill(words)
        if words == "round corners":
            page.get_by_text("rounded", exact=True).click()
        page.locator(f"[data-param={option}]").wait_for()
    search.fill("no such thing")
    page.get_by_text("No parameter found").wait_for()


def test_an_overtaken_request_is_cancelled(open_page: Open) -> None:
    page = open_page(own=True).page
    aborted: list[str] = []
    page.on("requestfailed", lambda request: aborted.append(request.failure))
    # The first answer takes for ever, so that only an abort ends it.
    held: list[Any] = []
    page.route(
        "**/playground/previews/*", lambda route: held.append(route) if not held else route.continue_()
    )
    number(page, "resize-width").fill("50")
    page.keyboard.press("Tab")
    until(page, "document.querySelector('.stage').getAttribute('aria-busy') === 'true'")
    number(page, "resize-width").fill("60")
    page.keyboard.press("Tab")
    expect_summary(page, "60 × ")
    assert aborted == ["net::ERR_ABORTED"]


def test_every_step_can_be_undone_and_done_again(open_page: Open) -> None:
    page = open_page().page
    number(page, "resize-width").fill("120")
    page.keyboard.press("Tab")
    expect_summary(page, "120 × ")
    number(page, "contrast").fill("40")
    page.keyboard.press("Tab")
    assert asked(page) == {"resize": {"width": 120}, "adjust": {"contrast": 40}}
    page.get_by_role("button", name="Undo").click()
    assert asked(page) == {"resize": {"width": 120}}
    page.keyboard.press("Control+z")
    assert asked(page) == {}
    page.keyboard.press("Control+Shift+z")
    assert asked(page) == {"resize": {"width": 120}}
    page.get_by_role("button", name="Reset", exact=True).click()
    assert asked(page) == {}


@pytest.mark.parametrize(
    "field", ["Find a parameter", "URL of a picture", "resize-width"], ids=["search", "url", "number"]
)
def test_undo_while_typing_is_of_the_text(field: str, open_page: Open) -> None:
    page = open_page().page
    number(page, "contrast").fill("40")
    page.keyboard.press("Tab")
    place = number(page, field) if field == "resize-width" else page.get_by_label(field)
    place.click()
    page.keyboard.type("5")
    until(page, "document.activeElement.value === '5'")
    page.keyboard.press("Control+z")
    until(page, "document.activeElement.value === ''")
    assert asked(page) == {"adjust": {"contrast": 40}}


def test_an_array_of_filters_keeps_its_order_and_its_repetitions(open_page: Open) -> None:
    blur = {"blur": {"mode": "motion", "value": 5, "angle": 0}}
    request = {"filter": [{"sepia": {"value": 80}}, blur, {"blur": {"mode": "zoom", "value": 3}}]}
    page = open_page(f"request={quote(json.dumps(request))}").page
    assert asked(page) == request
    page.get_by_role("button", name="Presets").click()
    page.get_by_label("Name of the preset").fill("listed")
    page.get_by_role("button", name="Save the request").click()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Reset", exact=True).click()
    assert asked(page) == {}
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("button", name="listed").first.click()
    assert asked(page) == request
    page.get_by_label("Find a parameter").fill("blur")
    second = number(page, "blur-value").nth(1)
    second.fill("7")
    page.keyboard.press("Tab")
    page.get_by_label("Find a parameter").fill("vignette")
    slider(page, "vignette-value").focus()
    page.keyboard.press("End")
    request["filter"][2]["blur"]["value"] = 7
    changed = asked(page)
    assert changed["filter"][:3] == request["filter"]
    assert list(changed["filter"][3]) == ["vignette"]
    imgsvc.parse(changed)
    command = page.get_by_role("group", name="Command").inner_text()
    assert command.startswith('echo \'{"filter":[')
    assert command.endswith("--spec -")
    number(page, "vignette-value").fill("700")
    page.keyboard.press("Tab")
    page.locator("[data-param=vignette-value] .error").filter(has_text="0 to 100").wait_for()
    page.get_by_label("Find a parameter").fill("blur")
    second.fill("900")
    page.keyboard.press("Tab")
    error = page.locator("[data-param=blur-value]").nth(1).locator(".error")
    error.filter(has_text="0 to 100").wait_for()
