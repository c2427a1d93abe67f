"""The playground over 10 Mbit/s: first paint, and previews of photographs after a touch of a slider."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

import imgsvc_core as imgsvc
from benchmarks.harness import Bound, verdict
from benchmarks.pictures import picture

ROUNDS = 40
FIRST_PAINTS = 9
OPTIONS = ("exposure", "saturation", "quality", "resize-width")
MEDIAN_MS, P95_MS, PAINT_MS = 150, 300, 1000
LARGER = {"6 MP": 6e6, "12 MP": 12e6}
LARGER_MS = 300
BYTES_PER_SECOND = 10e6 / 8
_PIXELS = 2e6

_TOUCH = """async ([option, place]) => {
    const slider = document.querySelector(`[data-param=${option}] input[type=range]`);
    const image = document.querySelector("img.after");
    const before = image.src;
    const started = performance.now();
    slider.value = place;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    while (image.src === before) await new Promise(done => setTimeout(done));
    await image.decode();
    return performance.now() - started;
}"""
_FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def main() -> int:
    """Print the first paint, and the median and 95th percentile of each slider; 1 if a bound is missed."""
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
    with playground() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        paints = [first_paint(browser, address) for _ in range(FIRST_PAINTS)]
        page = page_with(browser, address, _PIXELS)
        times = {option: times_of(page, option) for option in OPTIONS}
        larger = {
            name: times_of(page_with(browser, address, most), "exposure") for name, most in LARGER.items()
        }
        browser.close()
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")
    bounds = [Bound("first paint", statistics.median(paints), PAINT_MS, unit=" ms")]
    for option, taken in times.items():
        bounds += [
            Bound(f"preview after {option}, median", statistics.median(taken), MEDIAN_MS, unit=" ms"),
            Bound(f"preview after {option}, p95", statistics.quantiles(taken, n=20)[-1], P95_MS, unit=" ms"),
        ]
    for name, taken in larger.items():
        bounds.append(Bound(f"preview of {name}, median", statistics.median(taken), LARGER_MS, unit=" ms"))
    return verdict(bounds)


def page_with(browser: Browser, address: str, pixels: float) -> Page:
    """Return a slow page whose source is a photograph with so many pixels."""
    info = imgsvc.inspect(picture("12mp.jpg"))
    scale = min(1.0, (pixels / (info.width * info.height)) ** 0.5)
    made = imgsvc.process(
        picture("12mp.jpg"), {"scale": {"size": round(scale, 4)}, "output": {"quality": 90}}
    )
    print(f"{made.output.width} x {made.output.height} pixels, {made.output.bytes:,} bytes")
    page = slow_page(browser)
    page.goto(address)
    page.get_by_alt_text("Original").wait_for()
    file = {"name": "photo.jpg", "mimeType": "image/jpeg", "buffer": made.data}
    page.get_by_label("Picture file").set_input_files(file)
    page.locator(".summary", has_text=f"{made.output.width} × ").wait_for()
    page.locator("img.before").wait_for()
    return page


@contextmanager
def playground() -> Iterator[str]:
    """Give the address of a local playground."""
    command = [sys.executable, "-m", "imgsvc_cli", "playground", "--no-browser"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        yield service.stdout.readline().removeprefix("Playground: ").strip()
    finally:
        service.terminate()
        service.wait(timeout=60)


def slow_page(browser: Browser) -> Page:
    """Return a page with an empty cache and a connection of 10 Mbit/s."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    conditions = {
        "offline": False,
        "latency": 0,
        "downloadThroughput": BYTES_PER_SECOND,
        "uploadThroughput": BYTES_PER_SECOND,
    }
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", conditions)
    return page


def first_paint(browser: Browser, address: str) -> float:
    """Return the milliseconds until a new visitor sees the page."""
    page = slow_page(browser)
    page.goto(address)
    page.get_by_alt_text("Original").wait_for()
    painted: float = page.evaluate(_FIRST_PAINT)
    page.context.close()
    return painted


def times_of(page: Page, option: str) -> list[float]:
    """Return the times of a slider in milliseconds, and reset its parameter."""
    times = []
    for number in range(ROUNDS):
        page.locator(".stage[aria-busy=false]").wait_for()
        times.append(page.evaluate(_TOUCH, [option, 300 + 10 * (number % 20)]))
    page.locator(f"[data-param={option}] .clear").click()
    page.locator(".stage[aria-busy=false]").wait_for()
    return times


if __name__ == "__main__":
    sys.exit(main())
