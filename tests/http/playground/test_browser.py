"""The playground in a real browser: what a visitor does, from the first picture to the copied request."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.urls import parse
from tests.http.playground.conftest import Open, until
from tests.http.service_process import Service
from tests.support import encoded, requires

WEB = Path(__file__).parents[3] / "web"
PICTURES = WEB.parent / "examples" / "pictures"


def number(page: Any, option: str) -> Any:
    return page.locator(f"[data-param={option}] input[type=number]")


def slider(page: Any, option: str) -> Any:
    return page.locator(f"[data-param={option}] input[type=range]")


def solid(color: tuple[int, int, int]) -> bytes:
    """A small picture of one color."""
    file = io.BytesIO()
    Image.new("RGB", (50, 50), color).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def pictures() -> Iterator[str]:
    """A web server with the example pictures."""
    handler = partial(SilentHandler, directory=str(PICTURES))
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class SilentHandler(SimpleHTTPRequestHandler):
    """Serves files, and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def expect_summary(page: Any, *words: str) -> None:
    """Wait until the summary of the result has these words."""
    for word in words:
        page.locator(".summary", has_text=word).wait_for()


def size_of(page: Any, format_: str) -> str:
    """The size of a format in the comparison, once it is known."""
    cell = page.locator(f"[data-format={format_}] td.amount").first
    cell.filter(has_not_text="…").wait_for()
    return str(cell.inner_text())


def open_all_groups(page: Any) -> None:
    page.evaluate("document.querySelectorAll('.group [aria-expanded=false]').forEach(one => one.click())")


def asked(page: Any) -> Any:
    """The request as the page shows it."""
    page.get_by_role("tab", name="Code").click()
    return json.loads(page.get_by_role("group", name="JSON").inner_text())


def test_a_dropped_picture_is_processed(open_page: Open) -> None:
    opened = open_page()
    page = opened.page
    data = list(encoded.png().data)
    transfer = page.evaluate_handle(
        """data => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(data)], "mine.png", { type: "image/png" }));
            return transfer;
        }""",
        data,
    )
    page.dispatch_event(".page", "drop", {"dataTransfer": transfer})
    expect_summary(page, "png", f"{encoded.WIDTH} × {encoded.HEIGHT}")
    page.get_by_text("mine.png", exact=True).wait_for()
    assert opened.troubles == []


def test_a_pasted_and_a_chosen_picture_are_processed(open_page: Open) -> None:
    page = open_page().page
    page.evaluate(
        """data => {
            const clipboardData = new DataTransfer();
            clipboardData.items.add(new File([new Uint8Array(data)], "pasted.png", { type: "image/png" }));
            dispatchEvent(new ClipboardEvent("paste", { clipboardData }));
        }""",
        list(encoded.png().data),
    )
    expect_summary(page, "png", f"{encoded.WIDTH} × {encoded.HEIGHT}")
    file = {"name": "chosen.gif", "mimeType": "image/gif", "buffer": encoded.gif().data}
    page.get_by_label("Picture file").set_input_files(file)
    expect_summary(page, "gif")


def test_the_size_of_a_source_is_that_of_the_upright_picture(open_page: Open) -> None:
    page = open_page().page
    file = {"name": "turned.jpg", "mimeType": "image/jpeg", "buffer": encoded.jpeg_oriented().data}
    page.get_by_label("Picture file").set_input_files(file)
    turned = f"{encoded.HEIGHT} × {encoded.WIDTH}"
    page.locator(".source-facts", has_text=f"turned.jpg jpg {turned}").wait_for()
    expect_summary(page, turned)


def test_a_slider_changes_the_result(open_page: Open) -> None:
    opened = open_page()
    page = opened.page
    slider(page, "saturation").focus()
    before = page.get_by_alt_text("Result").get_attribute("src")
    page.keyboard.press("Home")
    until(page, f"document.querySelector('img.after').src !== '{before}'")
    assert number(page, "saturation").input_value() == "-100"
    page.locator("[aria-busy=false].stage").wait_for()
    colors = page.evaluate(
        """async () => {
            const image = await createImageBitmap(document.querySelector("img.after"));
            const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
            context.drawImage(image, 0, 0);
            const { data } = context.getImageData(0, 0, image.width, image.height);
            let most = 0;
            for (let at = 0; at < data.length; at += 4)
                most = Math.max(most, Math.abs(data[at] - data[at + 2]));
            return most;
        }"""
    )
    assert colors <= 2  # gray
    page.get_by_role("button", name="Reset Saturation").click()
    assert number(page, "saturation").input_value() == ""
    assert opened.troubles == []


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
    assert place.input_value() == "5"
    page.keyboard.press("Control+z")
    assert place.input_value() == ""
    assert asked(page) == {"adjust": {"contrast": 40}}


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


def test_one_touch_of_a_control_makes_a_valid_request(open_page: Open) -> None:
    """A filter whose other parameters are required gets values for them."""
    opened = open_page()
    page = opened.page
    page.get_by_label("Find a parameter").fill("motion")
    page.get_by_label("Find a parameter").fill("blur")
    slider(page, "blur-value").focus()
    page.keyboard.press("End")
    page.get_by_label("Find a parameter").fill("duotone")
    page.locator("[data-param=blur-value]").wait_for(state="hidden")  # the list is that of the new words
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
    assert "must be integer within -100 to 100 range, got 500" in alert.inner_text()
    assert "got 500" in page.locator("[data-param=exposure] .error").inner_text()
    assert number(page, "exposure").get_attribute("aria-invalid") == "true"
    page.get_by_role("button", name="Undo").click()
    alert.wait_for(state="detached")


def test_formats_are_compared(open_page: Open) -> None:
    page = open_page('request={"resize":{"width":160}}').page
    page.get_by_role("tab", name="Formats").click()
    page.locator(".formats[aria-busy=false]").wait_for()
    cells = {
        row.get_attribute("data-format"): row.locator("td.amount").all_inner_texts()
        for row in page.locator(".formats tbody tr").all()
    }
    assert list(cells) == ["avif", "webp", "jpg"]
    for size, difference, encoding in cells.values():
        assert re.fullmatch(r"[\d.]+ (B|kB)", size)
        assert 0 < float(difference) < 0.2
        assert encoding.endswith(" ms")
    page.locator("[data-format=webp]").get_by_role("button", name="Use").click()
    expect_summary(page, "webp")


def test_animations_are_compared_in_formats_that_move(open_page: Open) -> None:
    opened = open_page('example=day.gif&request={"resize":{"width":64}}')
    page = opened.page
    expect_summary(page, "gif", "64 × ")
    bytes_of_result = page.locator(".summary").inner_text()
    page.get_by_role("tab", name="Formats").click()
    page.locator("[data-format=apng]").wait_for()
    page.locator(".formats[aria-busy=false]").wait_for()
    rows = page.locator(".formats tbody tr").all()
    assert [row.get_attribute("data-format") for row in rows] == ["webp", "gif", "apng"]
    assert size_of(page, "gif") in bytes_of_result
    page.locator("[data-format=webp]").get_by_role("button", name="Use").click()
    expect_summary(page, "webp", size_of(page, "webp"))
    page.locator(".source select").select_option("portrait.jpg")
    page.locator("[data-format=avif]").wait_for()
    assert opened.troubles == []


def test_formats_are_compared_as_they_are_asked_for(open_page: Open) -> None:
    """What a format has not is left out; what it has, decides its row, as it decides the result."""
    output = {"format": "webp", "lossless": True, "effort": 0, "flatten": True}
    page = open_page(f"request={quote(json.dumps({'resize': {'width': 160}, 'output': output}))}").page
    page.get_by_role("tab", name="Formats").click()
    page.locator(".formats[aria-busy=false]").wait_for()
    expect_summary(page, "webp", size_of(page, "webp"))
    assert page.locator("[data-format=webp] td.amount").nth(1).inner_text() == "0.0000"
    avif, jpg = (page.locator(f"[data-format={name}]").get_by_role("button") for name in ("avif", "jpg"))
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


def test_the_request_is_copied_in_every_language(open_page: Open, tmp_path: Path) -> None:
    page = open_page('request={"resize":{"width":90},"filter":{"sepia":{"value":60}}}').page
    page.get_by_role("tab", name="Code").click()
    page.get_by_role("group", name="HTML").get_by_text("<picture>").wait_for()
    copied = {}
    for name in ("JSON", "curl", "Python", "Command", "URL", "HTML"):
        page.get_by_role("button", name=f"Copy {name}").click()
        page.get_by_role("button", name="Copied").first.wait_for()
        copied[name] = page.evaluate("navigator.clipboard.readText()")
        page.get_by_role("button", name=f"Copy {name}").wait_for()
    assert json.loads(copied["JSON"]) == {"resize": {"width": 90}, "filter": {"sepia": {"value": 60}}}
    assert re.search(r"/1\.0/image/\w+\.[\w-]+/resize:90x/sepia:60/", copied["URL"])  # signed
    picture = Path(__file__).parents[3] / "examples" / "pictures" / "portrait.jpg"
    (tmp_path / "portrait.jpg").write_bytes(picture.read_bytes())
    key = page.evaluate("sessionStorage.getItem('imgsvc-key')")
    sizes = set()
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "KEY": key}
    for language in ("curl", "Python", "Command"):
        program = sys.executable if language == "Python" else "sh"
        run = [program, "-c", copied[language]]
        subprocess.run(run, check=True, cwd=tmp_path, env=environment, capture_output=True)
        result = tmp_path / "portrait-result.jpg"
        sizes.add((imgsvc.inspect(result).width, imgsvc.inspect(result).height, len(result.read_bytes())))
        result.unlink()
    assert len(sizes) == 1


@pytest.mark.parametrize("stem", ["a, b;c", "-photo", 'the "best"'])
def test_copied_commands_take_files_of_any_name(stem: str, open_page: Open, tmp_path: Path) -> None:
    page = open_page('request={"resize":{"width":20}}').page
    file = {"name": f"{stem}.png", "mimeType": "image/png", "buffer": encoded.png().data}
    (tmp_path / f"{stem}.png").write_bytes(encoded.png().data)
    page.get_by_label("Picture file").set_input_files(file)
    expect_summary(page, "png")
    page.get_by_role("tab", name="Code").click()
    key = page.evaluate("sessionStorage.getItem('imgsvc-key')")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for language in ("curl", "Command"):
        run = ["sh", "-c", page.get_by_role("group", name=language).inner_text()]
        subprocess.run(run, check=True, cwd=tmp_path, env={**os.environ, "PATH": path, "KEY": key})
        result = tmp_path / f"{stem}-result.png"
        assert imgsvc.inspect(result).width == 20
        result.unlink()


def test_a_link_shows_the_same_again(open_page: Open) -> None:
    page = open_page("example=day.gif").page
    number(page, "resize-width").fill("64")
    page.keyboard.press("Tab")
    expect_summary(page, "64 × ")
    page.get_by_role("button", name="Copy link").click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert "isk_" not in link
    again = open_page(link.partition("#")[2]).page
    expect_summary(again, "gif", "64 × ")
    assert asked(again) == {"resize": {"width": 64}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"resize":{"wid', "not valid JSON"),
        ("null", "not a JSON object"),
        ('{"resize":{"width":40},"border":{"width":8},"store":{"path":"a"}}', "border.width, store.path."),
        ('{"filter":[null,{"sepia":{"value":40,"tone":2}}]}', "filter.sepia.tone."),
    ],
)
def test_a_link_tells_what_the_page_cannot_show_of_it(text: str, told: str, open_page: Open) -> None:
    opened = open_page(f"request={quote(text)}")
    page = opened.page
    page.get_by_role("alert").get_by_text(told).wait_for()
    page.wait_for_timeout(600)  # the page writes its address after 300 ms
    assert f"request={text}" in page.evaluate("decodeURIComponent(location.hash)")
    number(page, "resize-width").fill("50")
    page.keyboard.press("Tab")
    expect_summary(page, "50 × ")
    assert page.get_by_role("alert").count() == 0
    until(page, "location.hash.includes('50') && !/border|tone|wid%/.test(location.hash)")
    assert opened.troubles == []


def test_a_link_to_an_unknown_example_tells_which_there_are(open_page: Open) -> None:
    opened = open_page("example=cat.jpg", ready=False)
    page = opened.page
    told = page.get_by_role("alert").filter(has_text="There is no example 'cat.jpg'. Choose one of ")
    told.filter(has_text="day.gif").filter(has_text="portrait.jpg").wait_for()
    page.get_by_label("Example pictures").select_option("emblem.png")
    expect_summary(page, "png")
    assert page.get_by_role("alert").count() == 0
    assert opened.troubles == []


def test_the_url_has_a_line_of_its_own_on_phones(open_page: Open) -> None:
    page = open_page("example=cat.jpg", ready=False, viewport={"width": 390, "height": 844}).page
    page.get_by_role("alert").wait_for()
    assert page.get_by_label("URL of a picture").bounding_box()["width"] > 200


def test_responsive_results_with_a_border_are_as_wide_as_the_html_says(open_page: Open) -> None:
    request = {"resize": {"width": 400}, "border": {"size": 10}}
    page = open_page(f"request={quote(json.dumps(request))}").page
    page.get_by_role("tab", name="Code").click()
    html = page.get_by_role("group", name="HTML").filter(has_text="<picture>").inner_text()
    found = re.findall(r"/1\.0/image/[^/]+(/\S+) (\d+)w", html)
    assert len(found) == 9
    for path, width in found:
        result = imgsvc.process(PICTURES / "portrait.jpg", parse(path).spec())
        assert result.output.width == int(width)


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
    page.get_by_label("Find a parameter").fill("blur")
    second.fill("900")
    page.keyboard.press("Tab")
    error = page.locator("[data-param=blur-value]").nth(1).locator(".error")
    error.filter(has_text="0 to 100").wait_for()


def test_a_picture_is_fetched_by_its_url(open_page: Open, pictures: str, service: Service) -> None:
    own: dict[str, Any] = {
        "address": f"{service.url}/playground#key={service.key}",
        "ignore_https_errors": True,
    }
    opened = open_page('request={"resize":{"width":90}}', **own)
    page = opened.page
    place = page.get_by_label("URL of a picture")
    place.fill(f"{pictures}/day.gif")
    page.keyboard.press("Enter")
    expect_summary(page, "gif", "90 × ")
    page.locator(".source-facts", has_text="day.gif").wait_for()
    assert asked(page) == {"url": f"{pictures}/day.gif", "resize": {"width": 90}}
    until(page, "location.hash.includes('day.gif')")
    again = open_page(page.url.partition("#")[2], **own).page
    expect_summary(again, "gif", "90 × ")
    assert opened.troubles == []
    place.fill(f"{pictures}/none.jpg")
    page.get_by_role("button", name="Fetch").click()
    page.get_by_role("alert").filter(has_text="404").wait_for()


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
    page.locator("[data-param=watermark-id] input[type=file]").set_input_files(mark)
    until(page, f"JSON.stringify(({center})('after')) !== '{shown}'")
    red, green_, blue, _ = page.evaluate(center, "after")
    assert green_ > 150 > 80 > max(red, blue)
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


def test_what_browsers_cannot_show_is_shown_anyway(open_page: Open) -> None:
    page = open_page("example=coffee.heic&request=" + quote('{"output":{"format":"jp2"}}')).page
    expect_summary(page, "jp2")
    width = "document.querySelector('img.{}').naturalWidth"
    assert page.evaluate(width.format("after")) == page.evaluate(width.format("before")) > 0


def test_an_overtaken_request_is_cancelled(open_page: Open) -> None:
    page = open_page().page
    aborted: list[str] = []
    page.on("requestfailed", lambda request: aborted.append(request.failure))
    # The first answer takes for ever, so that only an abort ends it.
    held: list[Any] = []
    page.route("**/1.0/upload", lambda route: held.append(route) if not held else route.continue_())
    number(page, "resize-width").fill("50")
    page.keyboard.press("Tab")
    until(page, "document.querySelector('.stage').getAttribute('aria-busy') === 'true'")
    number(page, "resize-width").fill("60")
    page.keyboard.press("Tab")
    expect_summary(page, "60 × ")
    assert aborted == ["net::ERR_ABORTED"]


def test_the_key_is_asked_for_once(open_page: Open, playground: str) -> None:
    address, _, key = playground.partition("#key=")
    page = open_page().page
    page.evaluate("sessionStorage.clear()")
    page.goto(address.replace("playground", "healthz"))
    page.goto(address)
    dialog = page.get_by_role("dialog", name="API key")
    dialog.wait_for()
    dialog.get_by_label("API key").fill("isk_wrong")
    dialog.get_by_role("button").click()
    dialog.get_by_role("alert").wait_for()
    dialog.get_by_label("API key").fill(key)
    dialog.get_by_role("button").click()
    page.get_by_alt_text("Result").wait_for()
    page.reload()
    page.get_by_alt_text("Result").wait_for()
    assert not dialog.is_visible()


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_everybody_can_use_it(scheme: str, width: int, open_page: Open) -> None:
    """axe finds nothing serious in any tab, and nothing is wider than the window."""
    axe = WEB / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.is_file():
        requires.missing("axe-core is not installed (npm --prefix web ci)")
    opened = open_page(
        'request={"adjust":{"exposure":20},"resize":{"width":300}}',
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
        serious = [item for item in found if item["impact"] in ("serious", "critical")]
        assert not serious, json.dumps([(item["id"], item["nodes"][0]["html"]) for item in serious], indent=1)
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == (scheme == "dark")
    assert opened.troubles == []
