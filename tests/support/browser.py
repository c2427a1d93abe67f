"""Chromium in tests, without what only the window of its own user needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tests.support import requires

# Each window would load two pages that drop down from its address bar, and cost as much as that of a test.
# Letters lie where those of a window do, which the headless shell would hint otherwise.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--font-render-hinting=none",
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
]


def program() -> str:
    """Path of Chromium, if possible of the one without windows, which takes two thirds of the time."""
    return requires.program("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """A browser of Playwright."""
    api = requires.module("playwright.sync_api")
    path = program()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        yield browser
        browser.close()
