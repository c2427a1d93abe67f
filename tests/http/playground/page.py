"""Parts of the playground's page, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.http.playground.conftest import until

WEB = Path(__file__).parents[3] / "web"
PICTURES = WEB.parent / "examples" / "pictures"


def number(page: Any, option: str) -> Any:
    return page.locator(f"[data-param={option}] input[type=number]")


def slider(page: Any, option: str) -> Any:
    return page.locator(f"[data-param={option}] input[type=range]")


def expect_summary(page: Any, *words: str) -> None:
    """Wait until the summary of the result has these words."""
    for word in words:
        page.locator(".summary", has_text=word).wait_for()


def asked(page: Any) -> Any:
    """The request as the page shows it."""
    page.get_by_role("tab", name="Code").click()
    return json.loads(page.get_by_role("group", name="JSON").inner_text())


def copied(page: Any, button: str) -> str:
    """Press a button that copies, and return what is in the clipboard then."""
    page.evaluate("navigator.clipboard.writeText('')")
    page.get_by_role("button", name=button).click()
    until(page, "navigator.clipboard.readText().then(text => text !== '')")
    return str(page.evaluate("navigator.clipboard.readText()"))


def open_all_groups(page: Any) -> None:
    page.evaluate("document.querySelectorAll('.group [aria-expanded=false]').forEach(one => one.click())")
