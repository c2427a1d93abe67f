"""The files of the page are built from the sources in web/, and small."""

from __future__ import annotations

import gzip
import importlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import attrs
import pytest
from PIL import Image

from tests.support import requires

WEB = Path(__file__).parents[3] / "web"
BUILT = WEB.parent / "src" / "imgsvc_http" / "playground"
MOST_COMPRESSED = 150_000


@pytest.fixture
def packages() -> None:
    """The packages of web/."""
    requires.program("npm")
    if not (WEB / "node_modules").is_dir():
        requires.missing("the packages of web/ are not installed (npm --prefix web ci)")


@pytest.mark.usefixtures("packages")
def test_the_built_files_are_what_the_sources_give(tmp_path: Path) -> None:
    options = ["--outDir", str(tmp_path), "--logLevel", "warn"]
    subprocess.run(["npm", "--prefix", WEB, "run", "build", "--", *options], check=True, capture_output=True)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_bytes() for file in BUILT.iterdir() if file.is_file()}
    assert sorted(made) == sorted(kept)
    for name, content in made.items():
        assert content == kept[name], f"{name} is old: run 'npm --prefix web run build', and commit it"


@pytest.mark.usefixtures("packages")
def test_the_types_are_those_of_the_openapi_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(WEB.parent / "tools"))
    web_types = importlib.import_module("web_types")
    assert web_types.types() == web_types.TYPES.read_text(), (
        "web/openapi.ts is old: run 'python tools/web_types.py', and commit it"
    )


def test_the_page_is_small() -> None:
    assert sum(len(gzip.compress(file.read_bytes())) for file in BUILT.iterdir()) < MOST_COMPRESSED


@pytest.fixture
def photographs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that makes the pictures of the pages."""
    monkeypatch.syspath_prepend(str(WEB.parent / "docs" / "_ext"))
    return importlib.import_module("playground")


def test_pictures_show_the_pages_as_they_are(photographs: Any) -> None:
    for name in (*photographs.SHOTS, *photographs.DASHBOARDS):
        with Image.open(photographs.IMAGES / name) as picture:
            assert picture.info["comment"].decode() == photographs.looks(), (
                f"docs/images/{name} is stale: run nox -s pictures"
            )


@pytest.mark.parametrize("name", ["shared/text.ts", "playground/app.tsx", "shared/base.css"])
def test_pictures_are_stale_after_a_change_of_a_source(
    name: str, photographs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = shutil.copytree(photographs.SOURCES, tmp_path / "src")
    before = photographs.looks()
    monkeypatch.setattr(photographs, "SOURCES", sources)
    assert photographs.looks() == before
    with (sources / name).open("a") as file:
        file.write("\n")
    assert photographs.looks() != before


def test_pictures_are_stale_after_a_change_of_a_parameter(
    photographs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = photographs.looks()
    declared = photographs.declared()
    group = declared.groups[0]
    renamed = attrs.evolve(group.params[0], name="other")
    group = attrs.evolve(group, params=(renamed, *group.params[1:]))
    changed = attrs.evolve(declared, groups=(group, *declared.groups[1:]))
    monkeypatch.setattr(photographs, "declared", lambda: changed)
    assert photographs.looks() != before


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (WEB / "package-lock.json").read_text()
