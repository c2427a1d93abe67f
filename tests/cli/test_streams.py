"""Standard input and output that a shell has closed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.photos import as_vips, coffee


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    as_vips(coffee()).jpegsave(str(tmp_path / "photo.jpg"))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "closed", "code", "told"),
    [
        (["process", "-", "-o", "e.png"], "<&-", 3, "Standard input is closed"),
        (["inspect", "-"], "<&-", 3, "Standard input is closed"),
        (["process", "photo.jpg", "-o", "e.png", "--spec", "-"], "<&-", 2, "Standard input is closed"),
        (["process", "photo.jpg", "-o", "-"], ">&-", 5, "Standard output is closed"),
        (["process", "-", "-o", "-"], "<photo.jpg >&-", 5, "Standard output is closed"),
    ],
)
def test_what_is_closed_cannot_be_used(
    arguments: list[str], closed: str, code: int, told: str, folder: Path
) -> None:
    done = _run(*arguments, redirected=closed, folder=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1
    assert told in done.stderr
    assert [path.name for path in folder.iterdir()] == ["photo.jpg"]


def test_a_closed_input_is_an_error_of_the_source_in_json(folder: Path) -> None:
    done = _run("process", "-", "-o", "e.png", "--json", redirected="<&-", folder=folder)
    found = json.loads(done.stdout)
    assert (done.returncode, found["source"], found["error"]) == (3, "-", "source_error")


@pytest.mark.parametrize(
    ("arguments", "given", "told"),
    [
        (["-", "--spec", "-", "-o", "e.png"], b"{}", "input can be read only once"),
        (["photo.jpg", "--spec", "-", "--layers", "-", "-o", "e.png"], b"[]", "input can be read only once"),
        (["-", "--spec", "-", "-o", "e.png"], b"\x89PNG", "got '-': it is not UTF-8"),
        (["photo.jpg", "--layers", "-", "-o", "e.png"], b'{"a": 1}', 'must be a JSON array, got {"a": 1}'),
    ],
)
def test_what_standard_input_cannot_give_is_told(
    arguments: list[str], given: bytes, told: str, folder: Path
) -> None:
    command = [sys.executable, "-m", "imgsvc_cli", "process", *arguments]
    done = subprocess.run(command, cwd=folder, input=given, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr.decode().splitlines()[0]


@pytest.mark.parametrize(
    "arguments", [["batch", "in", "out", "--resize", "9x9"], ["inspect"], ["process", "-o", "out/"]]
)
def test_a_reader_that_leaves_ends_it_as_the_signal_does(arguments: list[str], folder: Path) -> None:
    (folder / "in").mkdir()
    names = [f"in/{number}.jpg" for number in range(50)]
    for name in names:
        (folder / name).hardlink_to(folder / "photo.jpg")
    command = [sys.executable, "-m", "imgsvc_cli", *arguments, *(names if arguments[0] != "batch" else [])]
    read = 'set -o pipefail; "$@" --json | head -n 1'
    done = subprocess.run(
        ["bash", "-c", read, "bash", *command], cwd=folder, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.count("\n")) == (141, 1), done
    assert done.stderr == ""


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["process", "photo.jpg", "-o", "made.png"], 0),
        (["inspect", "photo.jpg"], 0),
        (["inspect", "none"], 3),
    ],
)
def test_words_that_nobody_can_read_are_no_failure(
    arguments: list[str], code: int, as_json: bool, folder: Path
) -> None:
    done = _run(*arguments, *(["--json"] if as_json else []), redirected=">&-", folder=folder)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert (folder / "made.png").exists() == (arguments[0] == "process")


@pytest.mark.parametrize(
    ("redirected", "arguments"),
    [
        (">&-", []),
        (">&-", ["--json"]),
        ("2>&-", []),
        ("<&- >&- 2>&-", []),
        ("<&- >&- 2>&-", ["--json"]),
        ("<&- >&- 2>&-", ["--report", "page.html"]),
    ],
)
def test_a_batch_that_tells_nobody_does_its_work(redirected: str, arguments: list[str], folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "photo.jpg").rename(folder / "in" / "photo.jpg")
    (folder / "in" / "broken.jpg").write_text("no picture")
    (folder / "spec.json").write_text('{"resize": {"width": 50}}')
    done = _run("batch", "in", "out", "--spec", "spec.json", *arguments, redirected=redirected, folder=folder)
    assert done.returncode == 7  # as one of the two is broken
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in (folder / "out").iterdir() if path.suffix == ".jpg") == ["photo.jpg"]
    assert (folder / "page.html").exists() == ("--report" in arguments)


def _run(*arguments: str, redirected: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "imgsvc_cli", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
