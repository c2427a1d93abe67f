"""The report of a batch, looked at in a real browser."""

from __future__ import annotations

import os
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import imgsvc_batch
import imgsvc_core
from imgsvc_batch import Manifest
from imgsvc_batch.report import write_report
from imgsvc_core import Limits, SpecError, TargetError
from tests.batch.pictures import VARIANTS, fill
from tests.support import browser, encoded, photos

pytestmark = pytest.mark.usefixtures("shared_fork_server")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a batch in which something failed, far from its pictures."""
    folder = tmp_path_factory.mktemp("report")
    fill(folder / "in", 3)
    Image.fromarray(photos.coffee()).save(folder / "in" / "coffee <i>&.png")
    (folder / "in" / "broken.jpg").write_bytes(encoded.jpeg().data[:400])
    (folder / "in" / "empty <i>.jpg").touch()
    summary = imgsvc_batch.run(folder / "in", folder / "out", VARIANTS, workers=1)
    assert (summary.done, summary.failed) == (4, 2)
    with Manifest(folder / "out" / ".imgsvc-batch.sqlite") as manifest:
        write_report(manifest, str(folder / "out"), folder / "report.html")
    (folder / "in").rename(folder / "moved")
    (folder / "out").rename(folder / "moved too")
    return folder / "report.html"


def browse(*arguments: str) -> str:
    command = [browser.program(), "--headless", "--hide-scrollbars", *browser.FLAGS, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def test_the_page_shows_numbers_reasons_and_pictures(page: Path) -> None:
    document = browse("--dump-dom", page.as_uri())
    for text in ("Inputs", ">6<", ">4<", "corrupt_image", "broken.jpg", "coffee &lt;i&gt;&amp;.png", "hero"):
        assert text in document
    assert "'empty &lt;i&gt;.jpg' is empty" in document
    assert document.count("<img") == 4 * (1 + len(VARIANTS))
    assert "http://" not in document
    assert "https://" not in document


def test_the_page_tells_how_large_all_results_are(page: Path) -> None:
    results = [file for file in page.with_name("moved too").rglob("*.*") if not file.name.startswith(".")]
    size = sum(file.stat().st_size for file in results)
    number, unit = re.findall(r"<dt>After</dt><dd>([\d.]+) (\w+)</dd>", page.read_text())[0]
    assert float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit] == pytest.approx(size, rel=0.01)


def test_the_pictures_can_be_seen(page: Path, tmp_path: Path) -> None:
    shot = tmp_path / "page.png"
    browse("--window-size=1100,1400", f"--screenshot={shot}", page.as_uri())
    with Image.open(shot) as picture:
        colors = picture.convert("RGB").getcolors(maxcolors=1_000_000)
    assert colors is not None
    assert len(colors) > 5_000  # photographs, not only text on white


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    (folder / "in").mkdir()
    for number in range(3):
        (folder / "in" / f"{number}{'n' * 130}.jpg").write_bytes(b"broken")
    (folder / "in" / f"{'p' * 130}.png").write_bytes(encoded.png().data)
    imgsvc_batch.run(folder / "in", folder / "out", VARIANTS, workers=1)
    with Manifest(folder / "out" / ".imgsvc-batch.sqlite") as manifest:
        write_report(manifest, str(folder / "out"), folder / "report.html")
    return folder / "report.html"


def test_the_page_is_not_wider_than_a_narrow_window(long_names: Path) -> None:
    assert hidden(long_names, 600) == 0


def test_all_pictures_of_an_input_are_in_sight(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    Image.fromarray(photos.coffee()).save(tmp_path / "in" / "coffee.png")
    large = {name: {"resize": {"width": 300}, "output": {"format": name}} for name in ("jpg", "png", "webp")}
    imgsvc_batch.run(tmp_path / "in", tmp_path / "out", large, workers=1)
    with Manifest(tmp_path / "out" / ".imgsvc-batch.sqlite") as manifest:
        write_report(manifest, str(tmp_path / "out"), tmp_path / "report.html")
    assert "Failures" not in (tmp_path / "report.html").read_text()
    assert hidden(tmp_path / "report.html", 1100) == 0


def hidden(page: Path, width: int) -> int:
    """How many elements of a page, itself among them, hold more than their width shows."""
    script = (
        "<script>document.title = [...document.querySelectorAll('*')]"
        ".filter(one => one.clientWidth && one.scrollWidth > one.clientWidth).length</script>"
    )
    probe = page.with_name(f"probe{width}.html")
    probe.write_text(page.read_text() + script)
    document = browse(f"--window-size={width},900", "--dump-dom", probe.as_uri())
    found = re.search(r"<title>(\d+)</title>", document)
    assert found is not None
    return int(found[1])


def test_a_page_without_room_leaves_the_one_before(long_names: Path, tmp_path: Path) -> None:
    page = tmp_path / "kept.html"
    page.write_text("the one before")
    folder = long_names.parent
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Manifest(folder / "out" / ".imgsvc-batch.sqlite", reading=True) as manifest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # as on a full disk
        try:
            with pytest.raises(TargetError, match=r"kept\.html.*File too large"):
                write_report(manifest, str(folder / "out"), page)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert page.read_text() == "the one before"
    assert os.listdir(tmp_path) == ["kept.html"]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The folder of a batch of one picture."""
    fill(tmp_path / "in", 1)
    imgsvc_batch.run(tmp_path / "in", tmp_path / "out", {"": VARIANTS["thumb"]}, workers=1)
    return tmp_path


def written(folder: Path, page: Path, **options: Any) -> str:
    with Manifest(folder / "out" / ".imgsvc-batch.sqlite", reading=True) as manifest:
        write_report(manifest, str(folder / "out"), page, workers=1, **options)
    return page.read_text()


def test_pictures_are_decoded_by_the_limits_of_the_batch(small: Path) -> None:
    tight = written(small, small / "page.html", limits=Limits(source_pixels=1))
    assert tight.count("at most 1 is allowed") == 2
    assert written(small, small / "page.html").count("<img") == 2


def test_no_picture_is_decoded_in_this_process(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imgsvc_core, "process", None)
    assert written(small, small / "page.html").count("<img") == 2


def test_the_manifest_is_never_replaced_by_the_page(small: Path) -> None:
    manifest = small / "out" / ".imgsvc-batch.sqlite"
    before = manifest.read_bytes()
    with pytest.raises(SpecError, match="it is a file of the batch's manifest"):
        written(small, manifest)
    assert manifest.read_bytes() == before
