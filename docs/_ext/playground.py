"""Photograph the playground and the dashboard for the documentation: ``nox -s pictures`` runs this."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from PIL import Image

from imgsvc_http.answering.answers import unstructured
from imgsvc_http.endpoints.controls import declared

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = Path(__file__).parents[1] / "images"
SOURCES = Path(__file__).parents[2] / "web" / "src"
REQUEST = {
    "resize": {"width": 420},
    "adjust": {"exposure": 20, "saturation": -40},
    "filter": {"vignette": {"value": 50, "radius": 40}},
}
LAYERED = {
    "resize": {"width": 600},
    "layers": [
        {"gradient": {"from": "00000000", "to": "e0000000"}},
        {
            "text": {
                "text": "Autumn in the mountains",
                "font": "Inter Bold",
                "size": "12%",
                "color": "ffffff",
                "lines": 2,
            },
            "width": "60%",
            "gravity": "bottom-left",
            "x": 24,
            "y": 48,
        },
        {
            "shape": {"kind": "rectangle", "color": "ff3300"},
            "width": 100,
            "height": 8,
            "gravity": "bottom-left",
            "x": 24,
            "y": 24,
        },
    ],
}
SHOTS = {
    "playground.jpg": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "playground-dark.jpg": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "playground-phone.jpg": {"viewport": {"width": 390, "height": 800}, "device_scale_factor": 1.5},
    "playground-layers.jpg": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
}
_LAYERS = "playground-layers.jpg"
_TABS = {"playground-dark.jpg": "Formats"}
DASHBOARDS = {
    "dashboard.jpg": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dashboard-phone.jpg": {
        "viewport": {"width": 390, "height": 800},
        "device_scale_factor": 1.5,
        "color_scheme": "dark",
    },
}
REQUESTS = {
    "portrait.jpg": {"resize": {"width": 320}, "filter": {"duotone": {"light": "ffe2b8", "dark": "120a52"}}},
    "day.gif": {"resize": {"width": 240}, "output": {"format": "webp"}},
    "coffee.heic": {"crop": {"mode": "smart", "width": 400, "height": 300}, "output": {"format": "avif"}},
    "emblem.png": {"adjust": {"gamma": 120}},
}
WEBHOOKS = ("https://127.0.0.1/webhook", "https://shop.example.org/webhook")
"""An address that is refused, and one that does not answer."""


def looks() -> str:
    """Return a digest of what decides how the pages look. Each picture keeps it in its comment."""
    digest = hashlib.sha256(json.dumps(unstructured(declared())).encode())
    for file in sorted(SOURCES.rglob("*")):
        if file.suffix in (".ts", ".tsx", ".css"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def main() -> None:
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "imgsvc_cli", "playground", "--no-browser"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        page = service.stdout.readline().removeprefix("Playground: ").strip()
        address = f"{page}&request={quote(json.dumps(REQUEST))}"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            layered = f"{page}&example=coffee.heic&request={quote(json.dumps(LAYERED))}"
            url, _, key = page.partition("/playground#key=")
            fill(browser, url, key)
            for name in DASHBOARDS:
                photograph_dashboard(browser, url, key, name)
            for name in SHOTS:
                photograph(browser, layered if name == _LAYERS else address, name)
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
    if name == _LAYERS:
        show_layers(page)
    save(page, name)


def show_layers(page: Page) -> None:
    """Edit the text, with the samples of fonts in sight."""
    page.get_by_role("button", name="Layer 2").click(position={"x": 3, "y": 3})
    page.get_by_role("button", name="Fonts", exact=True).click()
    page.locator("[data-group=layers] .group-body > .items").evaluate("list => list.scrollIntoView()")
    page.mouse.move(0, 0)
    for family in ("Inter", "Noto Emoji", "Noto Sans Arabic", "Noto Sans Armenian"):
        page.locator(".families label", has_text=family).locator("img").wait_for()


def save(page: Page, name: str) -> None:
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        picture.convert("RGB").save(IMAGES / name, quality=86, comment=looks())


def fill(browser: Browser, url: str, key: str) -> None:
    """Make requests for the dashboard to show."""
    pictures = Path(__file__).parents[2] / "examples" / "pictures"
    documents = [*REQUESTS.items(), *(("portrait.jpg", {"webhook": {"url": hook}}) for hook in WEBHOOKS)]
    client = browser.new_context(extra_http_headers={"Authorization": f"Bearer {key}"}).request
    for name, document in documents:
        file = {"name": name, "mimeType": "image/jpeg", "buffer": (pictures / name).read_bytes()}
        client.post(f"{url}/1.0/upload", multipart={"data": json.dumps(document), "file": file})


def photograph_dashboard(browser: Browser, url: str, key: str, name: str) -> None:
    page = browser.new_context(**DASHBOARDS[name]).new_page()
    page.add_init_script(f"sessionStorage.setItem('imgsvc-key', {json.dumps(key)})")
    page.set_default_timeout(120_000)
    page.goto(f"{url}/dashboard")
    page.get_by_text("its address is not public").wait_for()
    page.locator(".badge.scheduled").wait_for()
    page.wait_for_load_state("networkidle")
    save(page, name)


if __name__ == "__main__":
    main()
