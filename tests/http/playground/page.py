"""Parts of the playground's page, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def open_all_groups(page: Any) -> None:
    page.evaluate("document.querySelectorAll('.group [aria-expanded=false]').forEach(one => one.click())")
