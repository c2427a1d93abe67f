"""A codec that cannot be stopped ends with the command, at a signal or when the time is up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import imgsvc_core as imgsvc
from imgsvc_cli.app import run
from tests.support import forked_python
from tests.support.forked_python import COMMAND
from tests.support.photos import as_vips, coffee

ENDLESS = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="5000" height="5000"><filter id="f">'
    + '<feTurbulence numOctaves="20" baseFrequency=".5"/>' * 60
    + '</filter><rect width="5000" height="5000" filter="url(#f)"/></svg>'
)


@pytest.mark.parametrize("as_json", [False, True])
def test_filters_that_take_minutes_end_in_time(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "slow.svg").write_text(ENDLESS)
    (tmp_path / "next.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="5" height="5"/>')
    arguments = ["process", "slow.svg", "next.svg", "-o", f"{tmp_path}/", "--format", "png"]
    arguments += ["--limit", "seconds=3", *(["--json"] if as_json else [])]
    done = subprocess.run(
        [sys.executable, "-m", "imgsvc_cli", *arguments],
        capture_output=True, text=True, cwd=tmp_path, timeout=150, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    if as_json:
        told = json.loads(done.stdout[: done.stdout.index("}") + 1])
        assert (told["source"], told["error"]) == ("slow.svg", "time_limit_exceeded")
    else:
        assert "slow.svg: Processing took longer than the 3 seconds" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["next.png", "next.svg", "slow.svg"]


def test_an_interrupt_of_python_ends_it_as_the_signal_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(imgsvc, "inspect", interrupted)
    assert run(["inspect", "a.png"]) == 130
    assert capsys.readouterr().err.strip() == "imgsvc: interrupted"


@pytest.mark.parametrize(
    ("number", "code", "told"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 129, "hung up"),
        (signal.SIGUSR1, 138, "ended by SIGUSR1"),
        (signal.SIGXCPU, 152, "ended by SIGXCPU"),
    ],
)
def test_a_signal_ends_it_while_a_codec_works(
    number: signal.Signals, code: int, told: str, tmp_path: Path
) -> None:
    (tmp_path / "made").mkdir()
    for name in ("a.png", "b.png"):
        as_vips(coffee()).pngsave(str(tmp_path / name))
    arguments = ["a.png", "b.png", "-o", "made/", "--format", "avif", "--effort", "9", "--scale", "8"]
    process = forked_python.start(*COMMAND, "process", *arguments, folder=tmp_path)
    while not list((tmp_path / "made").iterdir()):  # what is there first is the unfinished result
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (code, "", f"imgsvc: {told}\n")
    assert not list((tmp_path / "made").iterdir())


def test_a_signal_ends_it_though_the_unfinished_result_cannot_be_removed(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    as_vips(coffee()).pngsave(str(tmp_path / "a.png"))
    arguments = ["a.png", "-o", "made/", "--format", "avif", "--effort", "9", "--scale", "8"]
    process = forked_python.start(*COMMAND, "process", *arguments, folder=tmp_path)
    while not (unfinished := list((tmp_path / "made").iterdir())):
        assert process.poll() is None
        time.sleep(0.01)
    unfinished[0].rename(tmp_path / "moved")
    unfinished[0].mkdir()
    process.send_signal(signal.SIGTERM)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, err) == (143, "imgsvc: terminated\n")


def test_signals_that_are_ignored_stay_so(tmp_path: Path) -> None:
    as_vips(coffee()).pngsave(str(tmp_path / "a.png"))
    arguments = ["process", "a.png", "-o", "a.avif", "--effort", "4"]
    process = forked_python.start(*COMMAND, *arguments, folder=tmp_path, ignored=[signal.SIGHUP])
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
