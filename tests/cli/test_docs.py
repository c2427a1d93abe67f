"""``imgsvc docs`` opens what was built, and says how to build it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from imgsvc_cli.app import run
from imgsvc_cli.commands import docs


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
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "bin" / "xdg-open"
    browser.parent.mkdir()
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", f"{browser.parent}:{os.environ['PATH']}")
    assert run(["docs"]) == 0
    deadline = time.monotonic() + 60
    while not opened.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert opened.read_text().strip() == str(site / "index.html")


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
    assert list(docs.pages())[1:] == [folder / "_build" / "html" / "index.html", folder / "index.md"]


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


def test_what_is_not_built_is_told_with_the_remedy(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "index.html").unlink()
    assert run(["docs"]) == 6
    assert "nox -s docs" in capsys.readouterr().err
