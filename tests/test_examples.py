"""The examples do what they say, run as a reader would run them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import imgsvc_core as imgsvc

TOP = Path(__file__).parent.parent
PICTURES = TOP / "examples" / "pictures"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=TOP, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("picture", ["portrait.jpg", "coffee.heic", "day.gif", "logo.svg"])
def test_thumbnail(picture: str, tmp_path: Path) -> None:
    target = tmp_path / "thumbnail.webp"
    done = run("examples/thumbnail.py", PICTURES / picture, target)
    assert done.returncode == 0, done.stderr
    info = imgsvc.inspect(target)
    assert (info.format, info.width, info.height) == ("webp", 256, 256)
    assert info.animated == imgsvc.inspect(PICTURES / picture).animated


def test_brand_photos_goes_on_after_a_broken_file(tmp_path: Path) -> None:
    photos, branded = tmp_path / "photos", tmp_path / "branded"
    photos.mkdir()
    for name in ("coffee.heic", "portrait.jpg"):
        shutil.copy(PICTURES / name, photos)
    (photos / "broken.jpg").write_bytes((PICTURES / "portrait.jpg").read_bytes()[:500])
    done = run("examples/brand_photos.py", photos, branded, PICTURES / "logo.svg")
    assert done.returncode == 1
    assert done.stderr.startswith("broken.jpg: ")
    assert sorted(path.name for path in branded.iterdir()) == ["coffee.heic.webp", "portrait.jpg.webp"]
    assert imgsvc.inspect(branded / "portrait.jpg.webp").upright_size == (400, 512)


@pytest.mark.parametrize("example", ["batch_folder.py", "batch_cluster.py"])
def test_batches_make_three_sizes_of_each_picture_once(example: str, tmp_path: Path) -> None:
    shutil.copytree(PICTURES, tmp_path / "photos", ignore=shutil.ignore_patterns("logo.*"))
    for expected in ("3 done, 0 failed, 0 unchanged", "0 done, 0 failed, 3 unchanged"):
        done = run(f"examples/{example}", tmp_path / "photos", tmp_path / "site")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == expected
    widths = {path.name: imgsvc.inspect(path).width for path in (tmp_path / "site").glob("*.webp")}
    assert (widths["coffee-thumb.webp"], widths["coffee-card.webp"]) == (160, 480)
    assert len(widths) == 9


def test_demo_shows_every_result(tmp_path: Path) -> None:
    done = run("-m", "examples.demo", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    formats = {imgsvc.inspect(path).format for path in tmp_path.iterdir() if path.suffix != ".html"}
    assert {"jpg", "png", "apng", "webp", "avif", "jp2"} <= formats
    for target in ("face.webp", "only-the-red.avif", "evening.apng"):
        assert imgsvc.inspect(tmp_path / target).format == Path(target).suffix[1:]
        assert f'<img src="{target}"' in page
    assert imgsvc.inspect(tmp_path / "sheet.jpg").bytes < 300_000


def test_gallery(tmp_path: Path) -> None:
    done = run("-m", "examples.gallery", tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"adjustments.jpg", "filters.jpg"}
    assert all(imgsvc.inspect(path).width == 924 for path in tmp_path.iterdir())
