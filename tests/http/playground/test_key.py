"""The API key of the playground: asked for by a service, and by no local playground."""

from __future__ import annotations

from typing import Any

from tests.http.playground.conftest import Open, until
from tests.http.playground.page import expect_summary, number
from tests.http.service_process import Service

STRANGER: dict[str, Any] = {"ready": False, "ignore_https_errors": True}


def test_the_key_is_asked_for_once(open_page: Open, service: Service) -> None:
    page = open_page(address=f"{service.url}/playground", **STRANGER).page
    dialog = page.get_by_role("dialog", name="API key")
    dialog.wait_for()
    dialog.get_by_label("API key").fill("isk_wrong")
    dialog.get_by_role("button", name="Use this key").click()
    dialog.get_by_role("alert").filter(has_text="The service does not know this key.").wait_for()
    dialog.get_by_label("API key").fill(service.key)
    dialog.get_by_role("button", name="Use this key").click()
    page.get_by_alt_text("Result").wait_for()
    page.reload()
    page.get_by_alt_text("Result").wait_for()
    assert not dialog.is_visible()


def test_the_dialog_explains_keys_and_escape_closes_it(open_page: Open, service: Service) -> None:
    page = open_page(address=f"{service.url}/playground", **STRANGER).page
    dialog = page.get_by_role("dialog", name="API key")
    dialog.get_by_text("imgsvc keys create").wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    page.get_by_role("button", name="Enter a key").click()
    dialog.get_by_label("API key").fill(service.key)
    page.keyboard.press("Enter")
    page.get_by_alt_text("Result").wait_for()
    assert page.get_by_role("button", name="Enter a key").count() == 0
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("dialog", name="Presets").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Presets").wait_for(state="hidden")


def test_a_link_keeps_its_picture_until_there_is_a_key(open_page: Open, service: Service) -> None:
    page = open_page(address=f"{service.url}/playground#example=emblem.png", **STRANGER).page
    dialog = page.get_by_role("dialog", name="API key")
    dialog.wait_for()
    page.keyboard.press("Escape")
    number(page, "resize-width").fill("60")
    page.keyboard.press("Tab")
    until(page, "location.hash.includes('resize')")
    page.reload()
    dialog.get_by_label("API key").fill(service.key)
    page.keyboard.press("Enter")
    expect_summary(page, "png", "60 × ")


def test_a_local_playground_asks_nobody(open_page: Open, playground: str) -> None:
    """The printed address has the key, which the tab keeps for reloads and for the dashboard."""
    opened = open_page('request={"resize":{"width":70}}', address=f"{playground}&example=emblem.png")
    page = opened.page
    page.locator(".summary", has_text="70 × ").wait_for()
    until(page, "!location.hash.includes('key')")
    page.reload()
    page.locator(".summary", has_text="70 × ").wait_for()
    page.get_by_role("link", name="Dashboard").click()
    page.get_by_text("Usage this month").wait_for()
    assert page.get_by_role("dialog").count() == 0
    assert opened.troubles == []


def test_the_address_of_a_new_playground_replaces_the_key_of_an_earlier_one(
    open_page: Open, playground: str
) -> None:
    page = open_page(address=f"{playground}&example=emblem.png").page
    page.evaluate("sessionStorage.setItem('imgsvc-key', 'isk_of_another_playground')")
    page.goto("about:blank")
    page.goto(f"{playground}&example=emblem.png")
    page.locator(".summary").wait_for()
    assert page.get_by_role("dialog").count() == 0
