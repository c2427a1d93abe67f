"""Original and result under the divider of the playground, and what is drawn on them."""

from __future__ import annotations

import pytest

from tests.http.playground.conftest import Open
from tests.http.playground.page import asked, expect_summary


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
