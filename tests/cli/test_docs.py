"""``imgsvc docs`` opens what was built, and says how to build it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from imgsvc_cli.app import run
from imgsvc_cli.commands import docs
from tests.support import requires


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built documentation in the second of the folders that are searched."""
    folder = tmp_path / "html"
    folder.mkdir()
    (folder / "index.html").write_text("<title>imgsvc</title>")
    monkeypatch.setattr(
        docs, "pages", lambda: iter((tmp_path / "site" / "index.html", folder / "index.html"))
    )
    return folder


def test_the_page_is_opened_in_the_browser(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "bin" / "xdg-open"
    browser.parent.mkdir()
    complaint = "echo 'w3m: not found' >&2"
    browser.write_text(f'#!/bin/sh\n{complaint}\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", f"{browser.parent}:{os.environ['PATH']}")
    assert run(["docs"]) == 0
    deadline = time.monotonic() + 60
    while not opened.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert opened.read_text().strip() == (site / "index.html").as_uri()
    assert capfd.readouterr().err == ""


def test_the_page_is_told_where_no_browser_can_be_started(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["docs"]) == 0
    assert capfd.readouterr() == (f"{site / 'index.html'}\n", "")


def test_the_path_is_printed(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["docs", "--path"]) == 0
    assert capsys.readouterr().out.strip() == str(site / "index.html")


@pytest.mark.parametrize("info", [{"dir_info": {}}, {"dir_info": {"editable": True}}])
def test_the_clone_is_found_that_pip_installed(
    info: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "a clone"
    installed = tmp_path / "site-packages" / "imgsvc-1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Name: imgsvc\nVersion: 1\n")
    (installed / "direct_url.json").write_text(json.dumps({"url": clone.as_uri(), **info}))
    monkeypatch.syspath_prepend(installed.parent)
    folder = clone / "docs"
    assert list(docs.pages())[1:-1] == [folder / "_build" / "html" / "index.html", folder / "index.md"]


def test_pages_of_a_clone_are_read_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "index.md"
    text.write_text("# imgsvc")
    monkeypatch.setattr(docs, "pages", lambda: iter((tmp_path / "index.html", text)))
    assert run(["docs", "--path"]) == 0
    told = capsys.readouterr()
    assert told.out.strip() == str(text)
    assert "nox -s docs" in told.err


def test_an_installation_without_any_pages_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs, "pages", lambda: iter((tmp_path / "index.html", tmp_path / "index.md")))
    assert run(["docs"]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert "This installation has no documentation" in told.err


TOP = Path(__file__).parents[2]


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build a wheel or an sdist without a network, and return its only file."""
    requires.module("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the source distribution, as pip unpacks them."""
    requires.program("git")  # what git ignores does not go into an sdist
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", TOP, folder / "dist")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        archive.extractall(folder)
    (unpacked,) = folder.glob("imgsvc-*")
    return unpacked


@pytest.mark.parametrize("built", [False, True])
def test_a_wheel_of_an_sdist_has_the_pages_and_the_site_if_it_was_built(
    built: bool, sdist: Path, tmp_path: Path
) -> None:
    if built:
        site = sdist / "src" / "imgsvc_cli" / "site"
        site.mkdir()
        (site / "index.html").write_text("<title>imgsvc</title>")
    installed = tmp_path / "installed"
    shutil.unpack_archive(build("wheel", sdist, tmp_path / "dist"), installed, "zip")
    told = subprocess.run(
        [sys.executable, "-m", "imgsvc_cli", "docs", "--path"],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    page = "site/index.html" if built else "pages/index.md"
    assert told.stdout.strip() == str(installed / "imgsvc_cli" / page)
    pages = {
        path.relative_to(TOP / "docs") for path in (TOP / "docs").rglob("*.md") if "_build" not in path.parts
    }
    shipped = installed / "imgsvc_cli" / "pages"
    assert {path.relative_to(shipped) for path in shipped.rglob("*.md")} == pages
    assert not list(shipped.rglob("*.py"))
    included = [
        page.parent / path
        for page in shipped.rglob("*.md")
        for path in re.findall(r"^```\{(?:literal)?include\} (\S+)", page.read_text(), re.MULTILINE)
    ]
    assert len(included) > 10
    assert [path for path in included if not path.is_file()] == []
