"""Original and result under the divider of the playground, and what is drawn on them."""

from __future__ import annotations

import io
import math
import time
from typing import Any

import pytest
from PIL import Image

from tests.http.playground.conftest import WAIT_MS, Open, until
from tests.http.playground.page import asked, expect_summary, number
from tests.support import encoded


def test_the_divider_moves_with_pointer_and_keys(open_page: Open) -> None:
    page = open_page().page
    divider = page.get_by_role("slider", name="Divider between original and result")
    place = divider.bounding_box()
    middle = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 60, middle[1])
    page.mouse.up()
    moved = int(divider.get_attribute("aria-valuenow"))
    assert moved < 50
    divider.press("ArrowRight")
    assert int(divider.get_attribute("aria-valuenow")) == moved + 2
    divider.press("Home")
    assert divider.get_attribute("aria-valuenow") == "0"
    assert "inset(0px 100% 0px 0px)" in page.get_by_alt_text("Original").get_attribute("style")


def share_at(page: Any, x: float, y: float) -> tuple[float, float]:
    """The part of the picture that lies at a point of the page."""
    box = page.locator(".canvas").bounding_box()
    return (x - box["x"]) / box["width"], (y - box["y"]) / box["height"]


def test_the_divider_stays_in_the_window_at_any_zoom(open_page: Open) -> None:
    page = open_page().page
    window = page.locator(".stage").bounding_box()
    divider = page.get_by_role("slider", name="Divider between original and result")
    for zoom in ("100 %", "800 %"):
        page.get_by_role("button", name=zoom, exact=True).click()
        for key in ("Home", "End"):
            divider.press(key)
            place = divider.bounding_box()
            middle = place["x"] + place["width"] / 2
            assert window["x"] <= middle <= window["x"] + window["width"]
            assert window["y"] <= place["y"]
            assert place["y"] + place["height"] <= window["y"] + window["height"]
            shown = page.locator(".before").evaluate("one => getComputedStyle(one).clipPath")
            right = float(shown.split()[1].removesuffix("%").removesuffix("px"))
            canvas = page.locator(".canvas").bounding_box()
            assert canvas["x"] + canvas["width"] * (1 - right / 100) == pytest.approx(middle, abs=0.5)


def test_a_drag_moves_a_zoomed_picture(open_page: Open) -> None:
    page = open_page().page
    page.get_by_role("button", name="400 %").click()
    window, before = page.locator(".stage").bounding_box(), page.locator(".canvas").bounding_box()
    x, y = window["x"] + 100, window["y"] + 100
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y - 30, steps=3)
    page.mouse.up()
    after = page.locator(".canvas").bounding_box()
    assert (after["x"] - before["x"], after["y"] - before["y"]) == pytest.approx((40, -30))
    page.mouse.move(x, y)  # the button is up
    assert page.locator(".canvas").bounding_box() == after


def test_the_wheel_zooms_at_the_pointer_and_a_double_click_fits(open_page: Open) -> None:
    page = open_page().page
    box = page.locator(".canvas").bounding_box()
    x, y = box["x"] + 0.3 * box["width"], box["y"] + 0.7 * box["height"]
    page.mouse.move(x, y)
    for _ in range(8):
        page.mouse.wheel(0, -120)
    until(page, f"document.querySelector('.canvas').getBoundingClientRect().width > {4 * box['width']}")
    assert share_at(page, x, y) == pytest.approx((0.3, 0.7), abs=0.01)
    assert page.locator(".zoom output").inner_text().endswith(" %")
    page.mouse.dblclick(x, y)
    assert page.get_by_role("button", name="Fit").get_attribute("aria-pressed") == "true"
    assert page.locator(".canvas").bounding_box() == box


def test_a_double_click_on_the_divider_fits_the_picture(open_page: Open) -> None:
    page = open_page().page
    fit = page.get_by_role("button", name="Fit")
    page.get_by_role("button", name="400 %").click()
    assert fit.get_attribute("aria-pressed") == "false"
    divider = page.get_by_role("slider", name="Divider between original and result")
    divider.dblclick()
    assert fit.get_attribute("aria-pressed") == "true"
    assert divider.get_attribute("aria-valuenow") == "50"


def test_two_fingers_zoom_at_their_middle(open_page: Open) -> None:
    page = open_page(has_touch=True).page
    box = page.locator(".canvas").bounding_box()
    x, y = box["x"] + 0.25 * box["width"], box["y"] + 0.25 * box["height"]
    hand = page.context.new_cdp_session(page)

    def touch(kind: str, *places: float) -> None:
        points = [{"x": x + place, "y": y, "id": number} for number, place in enumerate(places)]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", -20)
    touch("touchStart", -20, 20)
    for apart in (30, 40, 50, 60):
        touch("touchMove", -apart, apart)
    touch("touchEnd")
    until(page, f"document.querySelector('.canvas').getBoundingClientRect().width > {2.5 * box['width']}")
    assert share_at(page, x, y) == pytest.approx((0.25, 0.25), abs=0.03)


def test_keys_zoom_and_move_the_picture(open_page: Open) -> None:
    page = open_page().page
    stage = page.get_by_role("group", name="Picture", exact=True)
    for _ in range(10):
        stage.press("+")
    before = page.locator(".canvas").bounding_box()
    stage.press("ArrowRight")
    after = page.locator(".canvas").bounding_box()
    assert after["width"] == before["width"]
    assert after["x"] < before["x"]
    stage.press("0")
    assert page.get_by_role("button", name="Fit").get_attribute("aria-pressed") == "true"


def test_the_picture_shown_is_of_one_request_with_its_own_facts(open_page: Open) -> None:
    """While the result of a new source is made, everything is still that of the source before."""
    page = open_page('request={"resize":{"width":100}}').page
    held: list[Any] = []
    page.route("**/playground/previews/*", lambda route: held.append(route))
    shown = """JSON.stringify([
        document.querySelector('.source-facts').innerText,
        document.querySelector('.summary').innerText,
        document.querySelector('img.before')?.naturalWidth,
        document.querySelector('img.after').naturalWidth,
    ])"""
    before = page.evaluate(shown)
    assert "portrait.jpg" in before
    file = {"name": "mine.png", "mimeType": "image/png", "buffer": encoded.png().data}
    with page.expect_request("**/playground/previews/*"):
        page.get_by_label("Picture file").set_input_files(file)
    page.locator("[aria-busy=true].stage").wait_for()
    assert page.evaluate(shown) == before
    held[0].continue_()
    expect_summary(page, "png")
    until(page, f"document.querySelector('img.before')?.naturalWidth === {encoded.WIDTH}")
    assert "mine.png" in page.evaluate(shown)
    assert "portrait" not in page.evaluate(shown)


COLORS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (255, 0, 255), (0, 255, 255)]
FRAME_SECONDS = 1


def days() -> bytes:
    """An animation of one color after the other."""
    frames = [Image.new("RGB", (60, 60), color) for color in COLORS]
    data = io.BytesIO()
    frames[0].save(
        data, "GIF", save_all=True, append_images=frames[1:], duration=1000 * FRAME_SECONDS, loop=0
    )
    return data.getvalue()


def frames_shown(page: Any) -> list[int]:
    """The frames of the original and of the result, both as the page shows them at this moment."""
    box = page.locator(".canvas").bounding_box()
    with Image.open(io.BytesIO(page.screenshot(clip=box))) as shot:
        picture = shot.convert("RGB")
    pixels = [picture.getpixel((picture.width * part // 10, picture.height // 4)) for part in (1, 9)]
    return [
        min(range(len(COLORS)), key=lambda index: math.dist(pixel, COLORS[index]))
        for pixel in pixels
        if isinstance(pixel, tuple)
    ]


def is_apart(original: int, result: int) -> bool:
    """True if one is more than a frame ahead, as loading it takes a moment."""
    return (original - result) % len(COLORS) not in (0, 1, len(COLORS) - 1)


def test_an_animation_and_its_result_show_the_same_frame(open_page: Open) -> None:
    page = open_page().page
    file = {"name": "days.gif", "mimeType": "image/gif", "buffer": days()}
    page.get_by_label("Picture file").set_input_files(file)
    expect_summary(page, "gif", "60 × ")
    for size in (50, 40):
        page.wait_for_timeout(2500 * FRAME_SECONDS)
        number(page, "resize-width").fill(str(size))
        page.keyboard.press("Tab")
        expect_summary(page, f"{size} × ")
        until(page, f"document.querySelector('img.after').naturalWidth === {size}")
        deadline = time.monotonic() + WAIT_MS / 1000
        while is_apart(*frames_shown(page)):  # both begin anew when both are loaded
            assert time.monotonic() < deadline


def test_an_old_original_is_not_shown_over_a_new_result(open_page: Open) -> None:
    page = open_page().page
    page.evaluate(
        """() => {
            const { decode } = HTMLImageElement.prototype;
            HTMLImageElement.prototype.decode = function () {
                HTMLImageElement.prototype.decode = decode;
                return new Promise((resolve) => { window.decoded = resolve; });
            };
        }"""
    )
    page.get_by_label("Example pictures").select_option("emblem.png")
    expect_summary(page, "png")
    until(page, "window.decoded !== undefined")
    assert page.get_by_alt_text("Original").count() == 0
    page.evaluate("window.decoded()")
    page.get_by_alt_text("Original").wait_for()


def test_the_zoom_shows_pixels(open_page: Open) -> None:
    page = open_page('request={"resize":{"width":100}}').page
    page.get_by_role("button", name="400 %").click()
    assert page.locator(".canvas").bounding_box()["width"] == 400


def test_a_crop_is_drawn_on_the_picture(open_page: Open) -> None:
    page = open_page("example=emblem.png").page
    page.get_by_role("button", name="Crop", exact=True).click()
    page.get_by_role("button", name="Draw on the picture").click()
    area = page.get_by_role("application")
    area.wait_for()
    place = area.bounding_box()
    corner = place["x"] + place["width"], place["y"] + place["height"]
    page.mouse.move(corner[0] - 2, corner[1] - 2)
    page.mouse.down()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2, steps=4)
    page.mouse.up()
    page.get_by_role("button", name="Done").click()
    crop = asked(page)["crop"]
    width = page.evaluate("document.querySelector('img.before').naturalWidth")
    assert crop["x"] == 0
    assert abs(crop["width"] - width / 2) <= width / 50
    expect_summary(page, f"{crop['width']} × {crop['height']}")


def test_the_focus_is_picked_on_the_picture(open_page: Open) -> None:
    page = open_page('request={"resize":{"width":100,"height":60,"mode":"fit"}}').page
    page.locator("[data-group=resize] .gravity-words").get_by_text("focus").click()
    page.get_by_role("button", name="Pick the point on the picture").click()
    area = page.get_by_role("application")
    area.wait_for()
    place = area.bounding_box()
    page.mouse.click(place["x"] + place["width"] * 0.25, place["y"] + place["height"] * 0.75)
    page.get_by_role("button", name="Done").click()
    resize = asked(page)["resize"]
    assert resize["gravity"] == "focus"
    assert (resize["focus_x"], resize["focus_y"]) == pytest.approx((0.25, 0.75), abs=0.02)
    expect_summary(page, "100 × 60")


def test_escape_ends_drawing(open_page: Open) -> None:
    page = open_page("example=emblem.png").page
    page.get_by_role("button", name="Crop", exact=True).click()
    page.get_by_role("button", name="Draw on the picture").click()
    page.get_by_role("application").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("application").wait_for(state="detached")
    page.get_by_role("button", name="Draw on the picture").wait_for()
