"""The API key of the playground."""

from __future__ import annotations

from tests.http.playground.conftest import Open


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
