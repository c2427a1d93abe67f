"""Names of files with line breaks and commands for terminals, as they are printed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from imgsvc_cli import printing
from imgsvc_cli.app import run
from tests.support.photos import as_vips, coffee

GOOD, BAD = "a\nb\x1b[31m\x9b2J\u202e.jpg", "bad\n\x1b]0;title\x07.jpg"
SHOWN = r"a\nb\x1b[31m\x9b2J\u202e.jpg", r"bad\n\x1b]0;title\x07.jpg"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / GOOD).write_bytes(as_vips(coffee()).jpegsave_buffer())
    (tmp_path / "in" / BAD).write_text("no picture")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], list[str]]:
    """The lines on standard output and standard error, which drive no terminal."""
    run(arguments)
    captured = capfd.readouterr()
    assert not CONTROL.search(captured.out + re.sub("\x1b\\[[0-9]*m(?=imgsvc:|$)", "", captured.err))
    return captured.out.split("\n")[:-1], captured.err.split("\n")[:-1]


@pytest.mark.usefixtures("folder")
def test_each_file_of_a_batch_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    good, bad = SHOWN
    resize = "--resize", "10x10"
    planned, _ = told(capfd, "batch", "in", "out", *resize, "--dry-run")
    assert sorted(line.rpartition(" (")[0] for line in planned) == [good, bad]
    _, lines = told(capfd, "batch", "in", "out", *resize, "--workers", "1")
    assert lines[0].startswith(f"{bad}: Source '{bad}' is no image")
    assert len(lines) == 3
    reported, _ = told(capfd, "batch", "report", "out", "--failures")
    assert [line.strip().startswith(bad) for line in reported] == [False, False, True, True]


@pytest.mark.usefixtures("folder")
def test_each_result_and_each_error_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    good, bad = SHOWN
    lines, errors = told(capfd, "process", f"in/{GOOD}", f"in/{BAD}", "-o", "out/", "--resize", "10x10")
    assert len(lines) == len(errors) == 1
    assert lines[0].startswith(f"{good} ")
    assert f" -> {good} " in lines[0]
    assert f"'in/{bad}'" in errors[0] or f"'{bad}'" in errors[0]
    assert (Path("out") / GOOD).is_file()


@pytest.mark.usefixtures("folder")
def test_facts_are_aligned_as_they_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    good, _ = SHOWN
    lines, _ = told(capfd, "inspect", f"in/{GOOD}")
    assert lines[0].split(maxsplit=1) == ["name", good]
    (text,), _ = told(capfd, "inspect", f"in/{GOOD}", "--json")
    assert json.loads(text)["name"] == GOOD


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments", [["inspect", "no\nfile\x1b.jpg"], ["inspect\n\x1b"], ["formats", "--\x1b"]]
)
def test_what_cannot_be_used_is_told_in_one_line(
    arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    _, lines = told(capfd, *arguments)
    assert [line for line in lines if not line.startswith("Try ")] == lines[:1]
    assert r"\x1b" in lines[0]


def test_json_on_a_terminal_is_the_same_document(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    document = {"name": GOOD + "é\u2028\x7f", "path": os.fspath(Path(BAD))}
    printing.echo_json(document)
    text = capsys.readouterr().out
    assert "é" in text
    assert not CONTROL.search(text)
    assert json.loads(text) == document
    assert text.count("\n") == 4


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", ["--layers", "--spec"])
def test_half_a_character_in_a_request_is_a_mistake_with_its_path(
    option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    layers = [{"text": {"text": "\ud800", "size": 9}}]
    Path("asked.json").write_text(json.dumps(layers if option == "--layers" else {"layers": layers}))
    _, [told_once] = told(capfd, "process", f"in/{GOOD}", "-o", "out.jpg", option, "asked.json")
    assert "layers[0].text.text: " in told_once
    assert told_once.endswith('got "\\ud800"')


@pytest.mark.usefixtures("folder")
def test_a_limit_names_the_layer(capfd: pytest.CaptureFixture[str]) -> None:
    Path("asked.json").write_text(json.dumps([{"text": {"text": "a" * 2000, "size": 4096}}]))
    _, [told_once] = told(capfd, "process", f"in/{GOOD}", "-o", "out.jpg", "--layers", "asked.json")
    assert ": layers[0].text.size: " in told_once
