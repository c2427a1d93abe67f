"""Photograph the playground for its page of the documentation: ``nox -s pictures`` runs this."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parents[1] / "images"
REQUEST = {
    "resize": {"width": 420},
    "adjust": {"exposure": 20, "saturation": -40},
    "filter": {"vignette": {"value": 50, "radius": 40}},
}
SHOTS = {
    "playground.jpg": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "playground-dark.jpg": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "playground-phone.jpg": {"viewport": {"width": 390, "height": 800}, "device_scale_factor": 1.5},
}
_TABS = {"playground-dark.jpg": "Formats"}


def main() -> None:
    command = [sys.executable, "-m", "imgsvc_cli", "playground", "--no-browser"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        address = f"{service.stdout.readline().strip()}&request={quote(json.dumps(REQUEST))}"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for name in SHOTS:
                photograph(browser, address, name)
            browser.close()
    finally:
        service.terminate()
        service.wait(timeout=60)


def photograph(browser: Browser, address: str, name: str) -> None:
    page = browser.new_context(**SHOTS[name]).new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.get_by_alt_text("Original").wait_for()
    if tab := _TABS.get(name):
        page.get_by_role("tab", name=tab).click()
        page.locator(".formats[aria-busy=false]").wait_for()
    page.locator(".stage[aria-busy=false]").wait_for()
    page.screenshot(path=IMAGES / name, type="jpeg", quality=86)


if __name__ == "__main__":
    main()
