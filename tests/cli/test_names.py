"""The names of results: which would be one, and which are told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import commands
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


@pytest.mark.parametrize("format", ["webp", "auto"])
@pytest.mark.parametrize("target", [[], ["-o", "made/"], ["-o", "made/named.webp"]])
def test_json_names_the_file_that_was_written(target: list[str], format: str, folder: Path) -> None:
    (folder / "made").mkdir()
    before = set(folder.rglob("*.*"))
    done = _run("a/photo.jpg", *target, "--format", format, "--json", folder=folder)
    told = json.loads(done.stdout)
    (made,) = set(folder.rglob("*.*")) - before
    assert folder / told["target"] == made
    assert made.name == told["output"]["name"]


def test_json_names_the_url_that_was_written(folder: Path) -> None:
    url = (folder / "made").as_uri()
    (folder / "made").mkdir()
    done = _run("a/photo.jpg", "-o", f"{url}/", "--json", folder=folder)
    assert json.loads(done.stdout)["target"] == f"{url}/photo.jpg"
    assert (folder / "made" / "photo.jpg").exists()


@pytest.mark.parametrize(("named", "told"), [("", "photo.jpg"), ("a.png", "a.png")])
def test_json_names_no_secrets_of_urls(named: str, told: str, folder: Path) -> None:
    done = _run("a/photo.jpg", "-o", f"memory://user:secret@box/{named}", "--json", folder=folder)
    assert json.loads(done.stdout)["target"] == f"memory://box/{told}"


def test_json_beside_a_piped_result_names_no_file(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "imgsvc_cli", "process", "a/photo.jpg", "-o", "-", "--json"],
        cwd=folder, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert json.loads(done.stderr)["target"] == "-"


def _run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    done = commands.run("process", *arguments, folder=folder)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


LONG = "x" * 300 + ".jpg"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f"process a/photo.jpg -o {LONG}", 5),
        (f"inspect {LONG}", 3),
        (f"batch {LONG} small --quality 75", 3),
        (f"batch a {LONG} --quality 75", 5),
        (f"batch a small --quality 75 --report {LONG}", 2),
        (f"batch a small --quality 75 --watermark {LONG}", 2),
        (f"batch report --manifest {LONG}", 2),
        (f"serve --config {LONG}", 2),
    ],
)
def test_a_name_that_is_too_long_is_told_in_a_sentence(line: str, code: int, folder: Path) -> None:
    done = commands.run(*line.split(), folder=folder)
    told = done.stderr.decode()
    assert (done.returncode, done.stdout) == (code, b"")
    assert "Traceback" not in told
    assert "[Errno" not in told
    assert not (folder / "small").exists()
