"""The report of a batch, looked at in a real browser."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from PIL import Image

from imgsvc_core import batch
from imgsvc_core.batch import Manifest
from imgsvc_core.batch.report import write_report
from tests.batch.pictures import VARIANTS, fill
from tests.support import encoded, photos, requires


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a batch in which something failed, far from its pictures."""
    folder = tmp_path_factory.mktemp("report")
    fill(folder / "in", 3)
    Image.fromarray(photos.coffee()).save(folder / "in" / "coffee <i>&.png")
    (folder / "in" / "broken.jpg").write_bytes(encoded.jpeg().data[:400])
    summary = batch.run(folder / "in", folder / "out", VARIANTS, workers=1)
    assert (summary.done, summary.failed) == (4, 1)
    with Manifest(folder / "out" / ".imgsvc-batch.sqlite") as manifest:
        write_report(manifest, str(folder / "out"), folder / "report.html")
    (folder / "in").rename(folder / "moved")
    (folder / "out").rename(folder / "moved too")
    return folder / "report.html"


def browse(*arguments: str) -> str:
    browser = requires.program("chromium", "chromium-browser", "google-chrome")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def test_the_page_shows_numbers_reasons_and_pictures(page: Path) -> None:
    document = browse("--dump-dom", page.as_uri())
    for text in ("Inputs", ">5<", ">4<", "corrupt_image", "broken.jpg", "coffee &lt;i&gt;&amp;.png", "hero"):
        assert text in document
    assert document.count("<img") == 4 * (1 + len(VARIANTS))
    assert "http://" not in document
    assert "https://" not in document


def test_the_pictures_can_be_seen(page: Path, tmp_path: Path) -> None:
    shot = tmp_path / "page.png"
    browse("--window-size=1100,1400", f"--screenshot={shot}", page.as_uri())
    with Image.open(shot) as picture:
        colors = picture.convert("RGB").getcolors(maxcolors=1_000_000)
    assert colors is not None
    assert len(colors) > 5_000  # photographs, not only text on white
