"""What the command writes for people holds no secrets of the URLs that it was given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import imgsvc_core as imgsvc
from imgsvc_core.sources import shown_url
from tests.cli.test_command import run


def test_several_sources_that_cannot_be_read(tmp_path: Path) -> None:
    urls = [f"http://me:hidden@127.0.0.1:9/{name}.jpg?token=hidden" for name in ("one", "two")]
    done = run("process", *urls, "-o", f"{tmp_path}/", "--format", "webp")
    assert done.returncode == 3
    assert b"hidden" not in done.stdout + done.stderr
    for name in (b"one", b"two"):
        assert b"http://127.0.0.1:9/" + name + b".jpg: " in done.stderr


def test_facts_of_sources_that_cannot_be_read() -> None:
    url = "http://me:hidden@127.0.0.1:9/a.jpg?token=hidden"
    for options in ((), ("--json",)):
        done = run("inspect", url, url, *options)
        assert b"hidden" not in done.stdout + done.stderr
        assert b"http://127.0.0.1:9/a.jpg" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:hidden@h/a b.jpg?token=hidden", "http://h/a b.jpg"),
        ("http://me:it'shidden@h/it's.jpg?token=it'shidden", "http://h/it's.jpg"),
        ("HTTPS://h/a.jpg#hidden", "HTTPS://h/a.jpg"),
        ("zip://a.jpg::http://me:hidden@h/a.zip?hidden", "zip://a.jpg::http://h/a.zip"),
        ("s3://bucket/a#1.jpg", "s3://bucket/a#1.jpg"),
    ],
)
def test_urls_with_any_characters(url: str, shown: str) -> None:
    assert shown_url(url) == shown
    for request in ({"watermark": {"id": url}}, {"layers": [{"picture": {"id": url}}]}):
        with pytest.raises(imgsvc.SpecError) as caught:
            imgsvc.process(np.zeros((9, 9, 3), np.uint8), request)
        assert f"got '{shown}'" in str(caught.value)
    asked = {"layers": [{"picture": {"source": url}}]}
    [picture] = imgsvc.parse(asked).layer_pictures.values()
    assert picture.shown == f"Layer picture '{shown}'"
