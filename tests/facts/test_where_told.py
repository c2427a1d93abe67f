"""Where facts are told: by the command, in reports of a batch, and by the service in every kind of answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

import imgsvc_batch
import imgsvc_core as imgsvc
from imgsvc_batch import Manifest
from imgsvc_batch.report import write_report
from tests.support import forked_python
from tests.support.forked_python import COMMAND
from tests.support.handmade import pillow
from tests.support.photos import photo

ALL = list(imgsvc.FACTS)
REQUEST = {"resize": {"width": 90}, "output": {"format": "png", "facts": ALL}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("facts")
    (folder / "cat.png").write_bytes(pillow(photo("cat"), "PNG"))
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(folder / "clear.png")
    return folder


def run(folder: Path, *arguments: str) -> str:
    done = forked_python.run(*COMMAND, *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_tells_those_of_results(folder: Path) -> None:
    told = json.loads(
        run(folder, "process", "cat.png", "-o", "a.png", "--resize=90x", f"--facts={','.join(ALL)}", "--json")
    )
    assert told["output"]["facts"] == imgsvc.process(folder / "cat.png", REQUEST).output.facts


def test_the_command_tells_those_of_sources(folder: Path) -> None:
    told = json.loads(run(folder, "inspect", "--facts", "cat.png", "--json"))
    assert told["facts"] == imgsvc.inspect(folder / "cat.png", facts=ALL).facts
    shown = run(folder, "inspect", "--facts", "cat.png", "clear.png")
    first = told["facts"]["palette"][0]
    assert f"{first['color']} {first['share']}, #" in shown
    assert "facts" not in run(folder, "inspect", "cat.png")


def test_reports_of_a_batch_show_them(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "cat.png").write_bytes((folder / "cat.png").read_bytes())
    events: list[imgsvc_batch.Event] = []
    imgsvc_batch.run(tmp_path / "in", tmp_path / "out", {"": REQUEST}, workers=1, on_event=events.append)
    expected = imgsvc.process(folder / "cat.png", REQUEST).output.facts
    assert [output.facts for event in events for output in event.outputs] == [expected]
    with Manifest(tmp_path / "out" / ".imgsvc-batch.sqlite") as manifest:
        [(_, _, _, [output])] = manifest.done(most=9)
        assert output.facts == expected
        write_report(manifest, str(tmp_path / "out"), tmp_path / "report.html", workers=1)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<i style='background:#") == len(expected["palette"]) + 1
    assert expected["lqip"] in page
    assert expected["phash"] in page
