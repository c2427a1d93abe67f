"""The names of results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.photos import as_vips, coffee


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    as_vips(coffee()).jpegsave(str(tmp_path / "a" / "photo.jpg"))
    return tmp_path


@pytest.mark.parametrize("other", ["link/photo.jpg", "link/../a/photo.jpg", "link/../link/photo.jpg"])
def test_one_folder_by_two_names_is_one(other: str, folder: Path) -> None:
    done = _run("a/photo.jpg", other, "--force", folder=folder)
    assert (done.returncode, done.stdout) == (5, "")
    assert "would both be named" in done.stderr
    assert [path.name for path in (folder / "a").iterdir()] == ["photo.jpg"]


def test_two_folders_are_two_though_a_link_lies_in_the_way(folder: Path) -> None:
    (folder / "b" / "below").mkdir(parents=True)
    (folder / "b" / "photo.jpg").write_bytes((folder / "a" / "photo.jpg").read_bytes())
    (folder / "photo.jpg").write_bytes((folder / "a" / "photo.jpg").read_bytes())
    (folder / "deep").symlink_to("b/below")
    done = _run("photo.jpg", "deep/../photo.jpg", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*-out.jpg")) == [
        "b/photo-out.jpg",
        "photo-out.jpg",
    ]


def _run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "imgsvc_cli", "process", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
