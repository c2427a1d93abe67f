"""The files of the page are built from the sources in web/, and small."""

from __future__ import annotations

import gzip
import importlib
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from tests.support import requires

WEB = Path(__file__).parents[3] / "web"
BUILT = WEB.parent / "src" / "imgsvc_http" / "playground"
MOST_COMPRESSED = 150_000


def test_the_built_files_are_what_the_sources_give(tmp_path: Path) -> None:
    requires.program("npm")
    if not (WEB / "node_modules").is_dir():
        requires.missing("the packages of web/ are not installed (npm --prefix web ci)")
    command = [
        "npm",
        "--prefix",
        str(WEB),
        "run",
        "build",
        "--",
        "--outDir",
        str(tmp_path),
        "--logLevel",
        "warn",
    ]
    subprocess.run(command, check=True, capture_output=True)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_bytes() for file in BUILT.iterdir() if file.is_file()}
    assert sorted(made) == sorted(kept)
    for name, content in made.items():
        assert content == kept[name], f"{name} is old: run 'npm --prefix web run build', and commit it"


def test_the_page_is_small() -> None:
    assert sum(len(gzip.compress(file.read_bytes())) for file in BUILT.iterdir()) < MOST_COMPRESSED


def test_pictures_show_the_pages_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(WEB.parent / "docs" / "_ext"))
    photographs = importlib.import_module("playground")
    for name in (*photographs.SHOTS, *photographs.DASHBOARDS):
        with Image.open(photographs.IMAGES / name) as picture:
            assert picture.info["comment"].decode() == photographs.looks(), (
                f"docs/images/{name} is stale: run nox -s pictures"
            )


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (WEB / "package-lock.json").read_text()
