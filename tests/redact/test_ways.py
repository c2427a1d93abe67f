"""From Python, the command, a batch, URLs and HTTP, each with the same result, and none from a cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import imgsvc_core as imgsvc
from imgsvc_batch import Batch, run_batch
from imgsvc_cli.app import run
from imgsvc_core.errors import SpecError
from imgsvc_core.spec import restore
from imgsvc_core.spec.options import base64_of, options_of, request_of
from tests.process.pictures import pixels_of
from tests.support.photos import as_vips, coffee

PHOTO = coffee()[100:220, 200:380]
HIDDEN: list[dict[str, Any]] = [
    {"x": 20, "y": 30, "width": 60, "height": 40, "mode": "pixels"},
    {"x": "60%", "y": "50%", "width": "30%", "height": "40%", "color": "FF3300"},
]
REQUEST = {"redact": HIDDEN, "resize": {"width": 90}, "output": {"format": "png"}}


def png() -> bytes:
    return bytes(as_vips(PHOTO).pngsave_buffer())


def test_python_takes_operations_in_their_order() -> None:
    boxes = [imgsvc.Redact(**item) for item in HIDDEN]
    listed = imgsvc.parse([*boxes, imgsvc.Resize(width=90), imgsvc.Output(format="png")])
    spec = imgsvc.parse(REQUEST)
    assert listed == spec == imgsvc.Spec(redact=boxes, resize={"width": 90}, output={"format": "png"})
    assert imgsvc.parse(json.loads(spec.canonical())) == restore(imgsvc.unparse(spec)) == spec
    with pytest.raises(SpecError, match="'redact' is applied before 'resize'"):
        imgsvc.parse([imgsvc.Resize(width=90), boxes[0]])


def test_other_boxes_are_another_key_of_a_cache() -> None:
    requests = [{"resize": {"width": 90}}, REQUEST, REQUEST | {"redact": HIDDEN[:1]}]
    requests += [REQUEST | {"redact": [HIDDEN[0], HIDDEN[1] | change]} for change in CHANGES]
    assert len({imgsvc.parse(request).digest for request in requests}) == len(requests)
    neutral = imgsvc.parse(REQUEST | {"rotate": {"angle": 0}})
    assert neutral.simplified() == imgsvc.parse(REQUEST)
    assert neutral.digest == imgsvc.parse(REQUEST).digest


CHANGES: list[dict[str, Any]] = [
    {"x": "61%"}, {"y": 60}, {"width": "31%"}, {"height": "41%"}, {"color": "FF3301"},
    {"color": None, "mode": "blur"},
]  # fmt: skip


def test_options_of_urls_hold_the_boxes() -> None:
    document = imgsvc.unparse(imgsvc.parse(REQUEST))
    options = options_of(document)
    assert set(options) == {"redact", "resize", "format"}
    assert imgsvc.unparse(imgsvc.parse(request_of(options))) == document
    with pytest.raises(SpecError) as caught:
        request_of({"redact": "W10=x"})
    assert [problem.path for problem in caught.value.problems] == ["redact"]


def test_explain_tells_it_first() -> None:
    plan = imgsvc.explain(REQUEST, imgsvc.inspect(png()))
    [line] = [line for line in plan.lines() if line["phase"] == "redact"]
    assert line["text"] == "redact boxes: 1 in pixels, 1 in color"
    assert [step["phase"] for step in plan.lines()][:3] == ["load", "redact", "resize"]
    unseen = imgsvc.explain({"redact": [{"faces": True}]}, imgsvc.inspect(png()))
    assert "redact faces, if there are any" in str(unseen)


def test_the_command_reads_boxes_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("photo.png").write_bytes(png())
    Path("redact.json").write_text(json.dumps(HIDDEN))
    command = ["process", "photo.png", "-o", "out.png", "--redact", "redact.json"]
    assert run([*command, "--resize", "90x"]) == 0
    np.testing.assert_array_equal(
        pixels_of(Path("out.png").read_bytes()), pixels_of(imgsvc.process(png(), REQUEST).data)
    )
    Path("redact.json").write_text(json.dumps([*HIDDEN, {"x": 900, "y": 0, "width": 5, "height": 5}]))
    assert run(command) == 2
    assert "photo.png: redact[2].x: Redact 'x' parameter must lead to a box" in capsys.readouterr().err
    Path("redact.json").write_text(json.dumps(HIDDEN))
    assert run(["process", "photo.png", "--in-place", "--redact", "redact.json"]) == 0
    shown = pixels_of(Path("photo.png").read_bytes())
    assert (shown[62:106, 110:160] == (0xFF, 0x33, 0)).all()
    assert run(["process", "photo.png", "--in-place", "--keep-pixels", "--redact", "redact.json"]) == 2


def test_a_batch_hides_the_same_in_each_picture(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a.png").write_bytes(png())
    (source / "thin.png").write_bytes(bytes(as_vips(PHOTO[:, :10]).pngsave_buffer()))
    summary = run_batch(Batch(source=str(source), target=str(target), variants={"": REQUEST}, workers=1))
    assert (summary.done, summary.failed) == (1, 1)
    np.testing.assert_array_equal(
        pixels_of((target / "a.png").read_bytes()), pixels_of(imgsvc.process(png(), REQUEST).data)
    )
    assert not (target / "thin.png").exists()


def test_a_list_in_base64_is_the_flag_of_a_file() -> None:
    assert request_of({"redact": base64_of(HIDDEN)}) == {"redact": HIDDEN}
