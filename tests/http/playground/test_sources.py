"""How a picture comes into the playground: dropped, pasted, chosen, fetched."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from typing import Any
from urllib.parse import quote

import pytest

import imgsvc_core as imgsvc
from tests.http.playground.conftest import Open, until
from tests.http.playground.page import PICTURES, asked, expect_summary, number
from tests.http.service_process import Service
from tests.support import encoded


class SilentHandler(SimpleHTTPRequestHandler):
    """Serves files, and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def pictures() -> Iterator[str]:
    """A web server with the example pictures."""
    handler = partial(SilentHandler, directory=str(PICTURES))
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_dropped_picture_is_processed(open_page: Open) -> None:
    opened = open_page()
    page = opened.page
    page.get_by_role("button", name="Choose, drop or paste a picture").wait_for()
    outline = "getComputedStyle(document.querySelector('.stage-area')).outlineStyle"
    page.dispatch_event(".page", "dragover")
    assert page.evaluate(outline) == "dashed"
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
    assert page.evaluate(outline) == "none"
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
    # Browsers tell nothing if a file is chosen that the field still has, as after an edit of the file.
    assert page.get_by_label("Picture file").input_value() == ""


def test_the_picture_that_was_chosen_last_is_shown(open_page: Open) -> None:
    """An example that is slower than the file chosen after it does not replace the file."""
    page = open_page().page
    held: list[Any] = []
    page.route("**/examples/day.gif", lambda route: held.append(route))
    with page.expect_request("**/examples/day.gif"):
        page.get_by_label("Example pictures").select_option("day.gif")
    file = {"name": "mine.png", "mimeType": "image/png", "buffer": encoded.png().data}
    page.get_by_label("Picture file").set_input_files(file)
    expect_summary(page, "png")
    with page.expect_event("requestfinished", lambda request: request.url.endswith("day.gif")):
        held[0].continue_()
    number(page, "resize-width").fill("10")
    page.keyboard.press("Tab")
    expect_summary(page, "10 × ")
    assert page.locator(".source-facts strong").inner_text() == "mine.png"
    assert page.get_by_role("alert").count() == 0


def test_the_original_is_that_of_the_newest_source(open_page: Open) -> None:
    """A picture whose decoding takes longer than the next one's does not replace it."""
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
    until(page, "window.decoded !== undefined")
    file = {"name": "mine.png", "mimeType": "image/png", "buffer": encoded.png().data}
    page.get_by_label("Picture file").set_input_files(file)
    newest = f"document.querySelector('img.before')?.naturalWidth === {encoded.WIDTH}"
    until(page, newest)
    page.evaluate("window.decoded()")
    number(page, "resize-width").fill("10")
    page.keyboard.press("Tab")
    expect_summary(page, "10 × ")
    assert page.evaluate(newest)


def test_the_size_of_a_source_is_that_of_the_upright_picture(open_page: Open) -> None:
    page = open_page().page
    file = {"name": "turned.jpg", "mimeType": "image/jpeg", "buffer": encoded.jpeg_oriented().data}
    page.get_by_label("Picture file").set_input_files(file)
    turned = f"{encoded.HEIGHT} × {encoded.WIDTH}"
    page.locator(".source-facts", has_text=f"turned.jpg jpg {turned}").wait_for()
    expect_summary(page, turned)


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
    place.fill(f"{pictures}/emblem")
    assert page.get_by_role("alert").count() == 0  # its cause is gone
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="404").wait_for()
    page.get_by_label("Example pictures").select_option("emblem.png")
    expect_summary(page, "png")
    assert place.input_value() == ""
    place.fill("https://example.org/another")  # typed, but not fetched
    page.get_by_label("Example pictures").select_option("portrait.jpg")
    expect_summary(page, "jpg")
    assert place.input_value() == "https://example.org/another"


@pytest.mark.parametrize("kind", ["text/uri-list", "text/plain"])
def test_a_dropped_url_is_fetched(kind: str, open_page: Open, pictures: str, service: Service) -> None:
    page = open_page(address=f"{service.url}/playground#key={service.key}", ignore_https_errors=True).page
    transfer = page.evaluate_handle(
        """([kind, text]) => {
            const transfer = new DataTransfer();
            transfer.setData(kind, text);
            return transfer;
        }""",
        [kind, f"# the day\r\n{pictures}/day.gif\r\n" if kind == "text/uri-list" else f"{pictures}/day.gif"],
    )
    page.dispatch_event(".page", "drop", {"dataTransfer": transfer})
    page.locator(".source-facts", has_text="day.gif").wait_for()
    assert page.get_by_label("URL of a picture").input_value() == f"{pictures}/day.gif"


def test_a_url_that_is_pasted_outside_of_fields_is_fetched(
    open_page: Open, pictures: str, service: Service
) -> None:
    page = open_page(address=f"{service.url}/playground#key={service.key}", ignore_https_errors=True).page
    fetched: list[str] = []
    page.on("request", lambda one: fetched.append(one.post_data) if one.url.endswith("/sources") else None)
    for place, name in ((".from-url input", "portrait.jpg"), (".stage", "day.gif")):
        page.evaluate(
            """([place, text]) => {
                const clipboardData = new DataTransfer();
                clipboardData.setData("text/plain", text);
                const paste = new ClipboardEvent("paste", { clipboardData, bubbles: true });
                document.querySelector(place).dispatchEvent(paste);
            }""",
            [place, f"{pictures}/{name}"],
        )
    page.locator(".source-facts", has_text="day.gif").wait_for()
    assert [json.loads(one) for one in fetched] == [{"url": f"{pictures}/day.gif"}]


def test_a_fetched_picture_is_described_by_its_file(open_page: Open, pictures: str, service: Service) -> None:
    page = open_page(
        f"url={quote(pictures)}/portrait.jpg&request=" + quote('{"resize":{"width":400}}'),
        address=f"{service.url}/playground#key={service.key}",
        ignore_https_errors=True,
    ).page
    expect_summary(page, "jpg", "400 × ")
    source = PICTURES / "portrait.jpg"
    width, height = imgsvc.inspect(source).upright_size
    size = source.stat().st_size
    told = page.locator(".source-facts").text_content()
    assert told == f"portrait.jpg jpg {width} × {height} {size / 1000:.3g} kB"
    change = page.locator(".summary small").inner_text()
    ((made, unit),) = re.findall(r"([\d.]+) (kB|MB)", page.locator(".summary").inner_text())
    result = float(made) * {"kB": 1e3, "MB": 1e6}[unit]
    assert change[0] == "−"
    assert abs(int(change[1:-2]) - 100 * (1 - result / size)) <= 1


def test_a_link_to_an_unknown_example_tells_which_there_are(open_page: Open) -> None:
    opened = open_page("example=cat.jpg", ready=False)
    page = opened.page
    told = page.get_by_role("alert").filter(has_text="There is no example 'cat.jpg'. Choose one of ")
    told.filter(has_text="day.gif").filter(has_text="portrait.jpg").wait_for()
    page.get_by_label("Example pictures").select_option("emblem.png")
    expect_summary(page, "png")
    assert page.get_by_role("alert").count() == 0
    assert opened.troubles == []


def test_what_browsers_cannot_show_is_shown_anyway(open_page: Open) -> None:
    page = open_page("example=coffee.heic&request=" + quote('{"output":{"format":"jp2"}}')).page
    expect_summary(page, "jp2")
    width = "document.querySelector('img.{}').naturalWidth"
    assert page.evaluate(width.format("after")) == page.evaluate(width.format("before")) > 0
