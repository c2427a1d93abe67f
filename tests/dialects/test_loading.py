"""Dialects are plug-ins, found by their entry points."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict

import imgsvc_core as imgsvc
from imgsvc_core.errors import SpecError
from imgsvc_urls import dialects
from imgsvc_urls.dialects.imagor import Imagor
from imgsvc_urls.dialects.imgproxy import Imgproxy
from imgsvc_urls.dialects.thumbor import Thumbor
from imgsvc_urls.errors import DialectError
from tests.support.plugins import install

PLUGIN = """
from imgsvc_urls.dialects import DialectError

class Other:
    def __init__(self, word="other"):
        self.word = word

    def parse(self, request):
        raise DialectError(f"{self.word} reads nothing", status=418)
"""


@pytest.mark.parametrize(
    ("dialect", "name"), [(Imagor, "unsafe"), (Imgproxy, "allow_security_options"), (Thumbor, "unsafe")]
)
def test_settings_in_the_wrong_place_are_not_shown_as_they_may_be_secrets(dialect: Any, name: str) -> None:
    with pytest.raises(SpecError) as caught:
        dialect(**{name: "canary"})
    assert "canary" not in str(caught.value)


def test_ours_are_installed() -> None:
    assert {"imagor", "imgproxy", "ipx", "thumbor"} <= set(dialects.names())
    assert dialects.load("imgproxy") is Imgproxy
    assert dialects.load("thumbor") is Thumbor


@pytest.mark.parametrize("name", ["nosuch", "imgsvc"])  # there is a command of the second name
def test_an_unknown_one_is_told_with_those_that_exist(name: str) -> None:
    with pytest.raises(imgsvc.SpecError, match=rf'imgproxy, ipx, thumbor.*got "{name}"'):
        dialects.load(name)


def test_others_can_add_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "other", "other_dialect:Other", PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "other" in dialects.names()
    with pytest.raises(DialectError, match="it reads nothing") as caught:
        dialects.load("other")(word="it").parse(dialects.ForeignRequest("/a"))
    assert caught.value.status == 418


def test_all_lines_of_a_header_are_read_and_remembered() -> None:
    lines = CIMultiDict([("Accept", "image/webp"), ("Host", "a.example"), ("accept", "*/*")])
    request = dialects.ForeignRequest("/a", lines)
    assert (request.header("Accept"), request.header("DPR")) == ("image/webp, */*", "")
    assert request.used_headers == ("Accept", "DPR")


def test_queries_are_decoded_and_kept_as_sent() -> None:
    request = dialects.ForeignRequest("/a%20b?u=%2Fc%3Fd&w=&w=1+2&?")
    assert (request.path, request.query) == ("/a%20b", "u=%2Fc%3Fd&w=&w=1+2&?")
    assert request.parameters == (("u", "/c?d"), ("w", ""), ("w", "1 2"), ("?", ""))


def test_errors_keep_their_status_in_other_processes() -> None:
    error = pickle.loads(pickle.dumps(DialectError("no", status=404)))
    assert (error.message, error.status) == ("no", 404)


def test_libvips_is_not_needed() -> None:
    code = """if True:
        import sys
        for name in ("pyvips", "numpy", "PIL", "aiohttp"):
            sys.modules[name] = None  # importing it fails
        from imgsvc_core import ImageInfo
        from imgsvc_urls.dialects import ForeignRequest, load
        info = ImageInfo(format="jpg", width=300, height=200, colorspace="srgb", bytes=1)
        url = load("imgproxy")().parse(ForeignRequest("/_/w:80/plain/https://pics.example/a.jpg"))
        assert url.spec(info).resize.width == 80
        url = load("thumbor")(unsafe=True).parse(ForeignRequest("/unsafe/80x0/pics.example/a.jpg"))
        assert url.spec(info).resize.width == 80
    """
    subprocess.run([sys.executable, "-c", code], check=True)
