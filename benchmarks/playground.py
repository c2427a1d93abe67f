"""Previews of a picture of 2 megapixels in the playground: from a touch of a slider to the new picture."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys

from playwright.sync_api import Page, sync_playwright

import imgsvc_core as imgsvc
from benchmarks.harness import Bound, verdict
from benchmarks.pictures import picture

ROUNDS = 40
OPTIONS = ("exposure", "saturation", "resize-width")
_MEGAPIXELS = 2e6

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


def main() -> int:
    """Print the median of each slider; 1 where one takes more than 200 ms."""
    info = imgsvc.inspect(picture("12mp.jpg"))
    scale = (_MEGAPIXELS / (info.width * info.height)) ** 0.5
    request = {"scale": {"size": round(scale, 4)}, "output": {"quality": 90}}
    small = imgsvc.process(picture("12mp.jpg"), request)
    print(f"{small.output.width} x {small.output.height} pixels, {small.output.bytes:,} bytes")
    command = [sys.executable, "-m", "imgsvc_cli", "playground", "--no-browser"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        address = service.stdout.readline().strip()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page()
            page.goto(address)
            page.get_by_alt_text("Original").wait_for()
            file = {"name": "2mp.jpg", "mimeType": "image/jpeg", "buffer": small.data}
            page.get_by_label("Picture file").set_input_files(file)
            page.locator(".summary", has_text=f"{small.output.width} × ").wait_for()
            medians = {option: median_of(page, option) for option in OPTIONS}
            browser.close()
    finally:
        service.terminate()
        service.wait(timeout=60)
    return verdict(
        [Bound(f"preview after {option}", taken, 200, unit=" ms") for option, taken in medians.items()]
    )


def median_of(page: Page, option: str) -> float:
    """Return the median time of a slider in milliseconds, and reset its parameter."""
    times = []
    for number in range(ROUNDS):
        page.locator(".stage[aria-busy=false]").wait_for()
        times.append(page.evaluate(_TOUCH, [option, 300 + 10 * (number % 20)]))
    page.locator(f"[data-param={option}] .clear").click()
    page.locator(".stage[aria-busy=false]").wait_for()
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
