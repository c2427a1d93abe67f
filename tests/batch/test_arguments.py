"""Arguments that make no batch are refused at once, in words, and nothing is made for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import imgsvc_batch
import imgsvc_core as imgsvc
from imgsvc_batch import Template
from imgsvc_batch.arguments import default_manifest
from imgsvc_batch.previewing import preview
from imgsvc_core.errors import SpecError
from tests.batch.pictures import SPEC, VARIANTS, fill

NOT_UTF8 = "b\udcff"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"source": ""}, "'source' parameter must be a path or a URL, got ''"),
        ({"source": None}, "'source' parameter must be a path or a URL, got None"),
        ({"source": NOT_UTF8}, r"'source' parameter must be UTF-8.*b\\udcff"),
        ({"source": "in\0"}, "'source' parameter must be UTF-8, without NUL"),
        ({"target": "file://"}, "'target' parameter must be a path or a URL"),
        ({"target": ""}, "'target' parameter must be a path or a URL"),
        ({"target": NOT_UTF8}, "'target' parameter must be UTF-8"),
        ({"target": "s3://"}, "'target' parameter must be the URL of a bucket"),
        ({"target": "memory:///"}, "'target' parameter must be the URL of a bucket or of a folder"),
        ({"target": "s3://bucket/x?versionId=1"}, "'target' parameter must be a folder or a plain URL"),
        ({"target": "zip://::out.zip"}, "'target' parameter must be a folder or a plain URL"),
        ({"variants": None}, "'variants' parameter must be specs by their names"),
        (
            {"variants": {"resize": {"width": 9}}},
            "must be specs by their names, such as {'': spec} for a single",
        ),
        (
            {"variants": [imgsvc.Resize(width=9)]},
            "must be specs by their names, such as {'': spec} for a single one",
        ),
        ({"variants": {NOT_UTF8: SPEC}}, "'variants' parameter must be specs by names that are UTF-8"),
        ({"variants": {1: SPEC}}, "'variants' parameter must be specs by names"),
        ({"variants": {"a/b": SPEC}}, "'variants' parameter must be specs by names without '/'"),
        (
            {"variants": {".a": SPEC}},
            "'variants' parameter must be specs by names without '/' and without '.'",
        ),
        ({"template": NOT_UTF8 + "{stem}"}, "'template' parameter must be .*UTF-8"),
        ({"template": "{stem}\0"}, "'template' parameter must be .*NUL"),
        ({"template": 1}, "'template' parameter must be a template, got 1"),
        (
            {"template": "{stem}.{format}", "variants": {"a": SPEC, "b": SPEC}},
            "with several variants it must",
        ),
        ({"manifest": ""}, "'manifest' parameter must be the path of a file"),
        ({"workers": 0}, "'workers' parameter must be a number of processes from 1 up, got 0"),
        ({"workers": -1}, "'workers' parameter must be a number of processes from 1 up, got -1"),
        ({"workers": "2"}, "'workers' parameter must be a number of processes from 1 up, got '2'"),
        ({"workers": True}, "'workers' parameter must be a number of processes from 1 up"),
        ({"limits": {}}, "'limits' parameter must be imgsvc_core.Limits, got {}"),
        ({"watermarks": "logo.png"}, "'watermarks' parameter must be pictures by their ids"),
        ({"watermarks": {NOT_UTF8: "logo.png"}}, "'watermarks' parameter must be pictures by their ids"),
        ({"cluster": "tcp://one:1", "target": "simplecache::memory://x"}, "'target' parameter must be"),
        ({"cluster": "tcp://one:1", "source": "simplecache::memory://x"}, "'cluster' parameter must not be"),
    ],
)
def test_what_makes_no_batch(
    arguments: dict[str, Any], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "in", 1)
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"source": "in", "target": "out", "variants": {"": SPEC}, **arguments}
    with pytest.raises(SpecError, match=expected):
        imgsvc_batch.run(**given)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_nothing_said_is_the_usual(tmp_path: Path) -> None:
    fill(tmp_path / "in", 1)
    assert (
        imgsvc_batch.run(tmp_path / "in", tmp_path / "out", VARIANTS, workers=None, manifest=None).done == 1
    )


def test_going_on_in_two_ways_at_once_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "in", 1)
    given: dict[str, Any] = {"source": tmp_path / "in", "target": tmp_path / "out", "variants": VARIANTS}
    expected = "'retry' parameter must be given without 'resume', got both"
    with pytest.raises(SpecError, match=expected):
        imgsvc_batch.run(**given, resume=True, retry=True)
    with pytest.raises(SpecError, match=expected):
        next(preview(imgsvc_batch.Batch(**given), resume=True, retry=True))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("template", "key", "expected"),
    [
        ("{stem}.{ext}.{format}", "a/b/photo.JPG", "a/b/photo.JPG.webp"),
        ("{stem}.{ext}.{format}", "photo", "photo..webp"),
        ("{folder}/small/{stem}.{format}", "a/b/photo.jpg", "a/b/small/photo.webp"),
        ("{folder}/{stem}.{format}", "photo.jpg", "photo.webp"),
        ("small/{folder}/{stem}.{format}", "a/photo.jpg", "small/a/photo.webp"),
        ("{stem}.{format}", "photo.", "photo.webp"),
        ("{stem}.{format}", "...jpg", "...jpg.webp"),
    ],
)
def test_names_of_results(template: str, key: str, expected: str) -> None:
    path = Template(template).path(key, variant="", width=4, height=3, suffix=".webp", digest="")
    assert path == expected


def test_a_slash_at_the_end_of_a_target_makes_no_other_manifest() -> None:
    first, again, other = map(default_manifest, ("s3://bucket/a", "s3://bucket/a/", "s3://bucket/b"))
    assert first == again != other


def test_messages_about_places_hold_no_secrets(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(imgsvc.process(np.zeros((9, 9, 3), np.uint8), {}).data)
    plain: dict[str, Any] = {
        "source": str(tmp_path),
        "variants": {"": {"resize": {"width": 5}}},
        "workers": 1,
    }
    for target in ("https://me:secret@127.0.0.1:1/a?token=secret", "ftp://me:secret@127.0.0.1:1/a"):
        with pytest.raises(imgsvc.ImgsvcError) as caught:
            imgsvc_batch.run_batch(imgsvc_batch.Batch(target=target, **plain))
        assert "secret" not in str(caught.value)
        assert "127.0.0.1:1/a" in str(caught.value)
    mark = "ftp://me:secret@127.0.0.1:1/a"
    request = {"watermark": {"id": mark}}
    with pytest.raises(imgsvc.ImgsvcError) as caught:
        imgsvc.process(str(tmp_path / "a.png"), request, watermarks={mark: mark})
    assert "secret" not in str(caught.value)
