"""A picture is sent to the service once, and previews come as large as they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imgsvc_core as imgsvc
from tests.http.playground.conftest import Open, until
from tests.http.playground.page import PICTURES, expect_summary, number, slider
from tests.support import encoded

SLOW_BYTES_PER_SECOND = 5_000


def photograph() -> dict[str, Any]:
    """A file that takes half a minute over a slow connection."""
    request = {"scale": {"size": 2}, "output": {"quality": 92}}
    data = imgsvc.process(PICTURES / "portrait.jpg", request).data
    assert len(data) > 20 * SLOW_BYTES_PER_SECOND
    return {"name": "mine.jpg", "mimeType": "image/jpeg", "buffer": data}


def sendings(page: Any) -> list[int]:
    """The bytes of each source that the page will have sent."""
    found: list[int] = []

    def note(request: Any) -> None:
        if request.method == "POST" and request.url.endswith("/playground/sources"):
            found.append(int(request.headers.get("content-length", 0)))

    page.on("request", note)
    return found


def slow(page: Any) -> Callable[[], None]:
    """Let the network of a page be slow. Return what makes it fast again."""
    session = page.context.new_cdp_session(page)

    def let_pass(bytes_per_second: int) -> None:
        throughput = dict.fromkeys(("downloadThroughput", "uploadThroughput"), bytes_per_second)
        session.send("Network.emulateNetworkConditions", {"offline": False, "latency": 0, **throughput})

    let_pass(SLOW_BYTES_PER_SECOND)
    return lambda: let_pass(-1)


def test_a_picture_is_sent_once_over_a_slow_network(open_page: Open) -> None:
    opened = open_page(own=True)
    page = opened.page
    sent, asked = sendings(page), []
    page.on("request", lambda one: asked.append(one.post_data) if "/previews/" in one.url else None)
    speed_up = slow(page)
    page.get_by_label("Picture file").set_input_files(photograph())
    page.locator(".waiting", has_text="Sending mine.jpg: ").wait_for()
    assert "portrait.jpg" in page.locator(".source-facts").inner_text()  # as the picture that is still shown
    speed_up()
    expect_summary(page, "800 × 1024")
    assert page.locator(".waiting").count() == 0
    for width in (90, 80, 70):
        number(page, "resize-width").fill(str(width))
        page.keyboard.press("Tab")
        expect_summary(page, f"{width} × ")
    assert len(sent) == 1
    assert len(asked) >= 4
    assert max(map(len, asked)) < 1000
    assert opened.troubles == []


def test_sending_a_picture_ends_when_another_one_is_chosen(open_page: Open) -> None:
    page = open_page(own=True).page
    failures: list[str] = []
    page.on("requestfailed", lambda request: failures.append(request.url.rpartition("/")[2]))
    speed_up = slow(page)
    page.get_by_label("Picture file").set_input_files(photograph())
    page.locator(".waiting", has_text="Sending mine.jpg: ").wait_for()
    file = {"name": "other.png", "mimeType": "image/png", "buffer": encoded.png().data}
    page.get_by_label("Picture file").set_input_files(file)
    speed_up()
    page.locator(".source-facts", has_text="other.png").wait_for()
    assert failures == ["sources"]
    assert page.get_by_role("alert").count() == 0


def test_a_sending_that_failed_is_repeated(open_page: Open) -> None:
    page = open_page(own=True).page
    sent, failed = sendings(page), list[Any]()

    def fail(route: Any) -> None:
        failed.append(route)
        route.abort("connectionreset")

    page.route("**/playground/sources", fail)
    page.get_by_label("Picture file").set_input_files(photograph())
    page.get_by_role("alert").filter(has_text="cannot be reached").wait_for()
    page.unroute("**/playground/sources")
    expect_summary(page, "800 × 1024")
    assert len(sent) == len(failed) + 1
    assert page.get_by_role("alert").count() == 0


def test_a_picture_that_is_refused_is_sent_once(open_page: Open) -> None:
    page = open_page(own=True).page
    sent = sendings(page)
    page.get_by_role("tab", name="Formats").click()
    page.locator("[data-format=jpg] .amount").first.wait_for()
    file = {"name": "notes.jpg", "mimeType": "image/jpeg", "buffer": b"no picture"}
    page.get_by_label("Picture file").set_input_files(file)
    alert = page.get_by_role("alert").filter(has_text="notes.jpg")
    alert.wait_for()
    assert page.locator("[data-format]").count() == 0, "there is nothing to compare, and the error is told"
    number(page, "resize-width").fill("50")
    page.keyboard.press("Tab")
    alert.wait_for()
    page.get_by_label("Example pictures").select_option("emblem.png")
    expect_summary(page, "png", "50 × ")
    assert len(sent) == 1


def test_a_preview_of_another_picture_ends_at_once(open_page: Open) -> None:
    page = open_page().page
    page.route("**/playground/previews/portrait.jpg", lambda route: None)  # no answer: only an abort ends it
    with page.expect_request("**/playground/previews/portrait.jpg"):
        number(page, "resize-width").fill("50")
        page.keyboard.press("Tab")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("portrait.jpg")):
        page.get_by_label("Example pictures").select_option("emblem.png")
    expect_summary(page, "png", "50 × ")
    assert page.get_by_role("alert").count() == 0


def test_a_picture_that_the_service_does_not_keep_any_more_is_sent_again(open_page: Open) -> None:
    page = open_page().page
    sent = sendings(page)
    page.get_by_label("Picture file").set_input_files(photograph())
    expect_summary(page, "800 × 1024")
    unknown = re.compile("[0-9a-f]{32}")
    page.route(
        "**/playground/previews/*",
        lambda route: route.continue_(url=unknown.sub("0" * 32, route.request.url)),
        times=1,
    )
    number(page, "resize-width").fill("90")
    page.keyboard.press("Tab")
    expect_summary(page, "90 × ")
    assert len(sent) == 2
    assert page.get_by_role("alert").count() == 0


def test_a_preview_is_as_large_as_it_is_shown_and_whole_when_zoomed(open_page: Open) -> None:
    page = open_page().page
    width = "document.querySelector('img.after').naturalWidth"
    told = page.locator(".summary").inner_text()
    whole = int(told.split("\n")[1].split(" × ")[0])
    assert page.evaluate(width) < whole
    page.get_by_role("button", name="200 %").click()
    until(page, f"{width} === {whole}")
    assert page.locator(".summary").inner_text().split("\n")[1:3] == told.split("\n")[1:3]


def test_the_result_is_downloaded_as_it_is(open_page: Open, tmp_path: Path) -> None:
    page = open_page('request={"resize":{"width":200},"output":{"format":"heic"}}').page
    expect_summary(page, "heic")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "portrait-result.heic"
    download.value.save_as(tmp_path / "result.heic")
    found = imgsvc.inspect(tmp_path / "result.heic")
    assert (found.format, found.width) == ("heic", 200)


def test_a_broken_picture_takes_the_place_of_none(open_page: Open) -> None:
    """Neither is an old result shown over a new original, nor does the error stay over the next picture."""
    page = open_page().page
    file = {"name": "broken.jpg", "mimeType": "image/jpeg", "buffer": photograph()["buffer"][:5000]}
    page.get_by_label("Picture file").set_input_files(file)
    page.get_by_role("alert").wait_for()
    assert page.locator(".canvas").count() == 0
    assert page.locator(".source-facts").inner_text() == "broken.jpg"
    page.get_by_label("Example pictures").select_option("emblem.png")
    expect_summary(page, "png")
    assert page.get_by_role("alert").count() == 0


def test_a_result_that_is_not_of_the_request_looks_stale(open_page: Open) -> None:
    page = open_page().page
    number(page, "resize-width").fill("-5")
    page.keyboard.press("Tab")
    page.get_by_role("alert").wait_for()
    assert page.locator(".stage.stale").count() == 1
    assert page.get_by_role("button", name="Download").is_disabled()
    slider(page, "resize-width").press("End")
    page.locator(".stage.stale").wait_for(state="detached")
    assert page.get_by_role("alert").count() == 0
