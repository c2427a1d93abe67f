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
    dialog.get_by_role("button", name="Use this key").click()
    dialog.get_by_role("alert").wait_for()
    dialog.get_by_label("API key").fill(key)
    dialog.get_by_role("button", name="Use this key").click()
    page.get_by_alt_text("Result").wait_for()
    page.reload()
    page.get_by_alt_text("Result").wait_for()
    assert not dialog.is_visible()


def test_the_dialog_explains_keys_and_escape_closes_it(open_page: Open, playground: str) -> None:
    address, _, key = playground.partition("#key=")
    page = open_page(ready=False, address=address).page
    dialog = page.get_by_role("dialog", name="API key")
    dialog.get_by_text("imgsvc keys create").wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    page.get_by_role("button", name="Enter a key").click()
    dialog.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_alt_text("Result").wait_for()
    assert page.get_by_role("button", name="Enter a key").count() == 0
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("dialog", name="Presets").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Presets").wait_for(state="hidden")
