"""A watermark in the playground."""

from __future__ import annotations

import io
import json
from typing import Any
from urllib.parse import quote

from PIL import Image

from tests.http.playground.conftest import Open, until
from tests.http.playground.page import asked, expect_summary, number


def solid(color: tuple[int, int, int]) -> bytes:
    """A small picture of one color."""
    file = io.BytesIO()
    Image.new("RGB", (50, 50), color).save(file, "PNG")
    return file.getvalue()


def test_a_watermark_is_uploaded_and_laid_on_the_picture(open_page: Open) -> None:
    opened = open_page('request={"resize":{"width":200,"height":200,"mode":"fit"}}')
    page = opened.page
    center = """name => {
        const image = document.querySelector(`img.${name}`);
        const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
        const context = canvas.getContext("2d");
        context.drawImage(image, image.naturalWidth / 2, image.naturalHeight / 2, 1, 1, 0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data];
    }"""
    shown = page.evaluate(f"JSON.stringify(({center})('after'))")
    page.get_by_role("button", name="Watermark", exact=True).click()
    green = solid((0, 200, 0))
    mark = {"name": "green.png", "mimeType": "image/png", "buffer": green}
    field = page.locator("[data-param=watermark-id] input[type=file]")
    field.set_input_files(mark)
    assert field.input_value() == ""
    until(page, f"(([red, green, blue]) => green > 150 && Math.max(red, blue) < 80)(({center})('after'))")
    id_ = asked(page)["watermark"]["id"]
    chooser = page.locator("[data-param=watermark-id] select")
    assert chooser.input_value() == id_
    again = open_page(f"request={quote(json.dumps({'watermark': {'id': id_}}))}").page
    again.get_by_role("button", name="Watermark", exact=True).click()
    again.locator("[data-param=watermark-id] select").get_by_role("option", name="green").wait_for(
        state="attached"
    )
    chooser.select_option("")
    until(page, f"JSON.stringify(({center})('after')) === '{shown}'")
    assert "watermark" not in asked(page)
    wrong = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no picture"}
    page.locator("[data-param=watermark-id] input[type=file]").set_input_files(wrong)
    page.locator("[data-param=watermark-id] .error").wait_for()


def test_what_changes_during_an_upload_of_a_watermark_is_kept(open_page: Open) -> None:
    page = open_page().page
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route) if route.request.method == "POST" else route.continue_()

    page.route("**/1.0/watermarks", hold)
    page.get_by_role("button", name="Watermark", exact=True).click()
    mark = {"name": "green.png", "mimeType": "image/png", "buffer": solid((0, 200, 0))}
    with page.expect_request(lambda request: request.method == "POST" and "watermarks" in request.url):
        page.locator("[data-param=watermark-id] input[type=file]").set_input_files(mark)
    number(page, "resize-width").fill("120")
    page.keyboard.press("Tab")
    expect_summary(page, "120 × ")
    held[0].continue_()
    until(page, "document.querySelector('[data-param=watermark-id] select').value !== ''")
    request = asked(page)
    assert list(request) == ["resize", "watermark"]
    assert request["resize"] == {"width": 120}
