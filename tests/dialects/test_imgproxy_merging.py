"""Options of imgproxy that come twice, in presets and URLs, and arguments that are left empty."""

from __future__ import annotations

from typing import Any

import pytest

from imgsvc_urls.dialects import ForeignRequest
from imgsvc_urls.dialects.imgproxy import Imgproxy, sign
from imgsvc_urls.dialects.imgproxy.options import Options
from imgsvc_urls.errors import DialectError

PLAIN = "plain/https://pics.example/a.jpg"
BASE64 = "aHR0cHM6Ly9waWNzLmV4YW1wbGUvYS5qcGc.png"
KEY, SALT = "6c6f636b2d6b6579", "73616c742d31"


def options(text: str, **settings: Any) -> Options:
    path = "/".join(filter(None, ["/unsafe", text, PLAIN]))
    return Imgproxy(**settings).parse(ForeignRequest(path)).options


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("g:no:0:60/g:so", "g:so:0:60"),
        ("g:no:7:60/g:so::5", "g:so:7:5"),
        ("g:no:7:60/g:so:3", "g:so:3:60"),
        ("g:no:7:60/g:sm/g:so", "g:so"),
        ("g:fp:0.3:0.4/g:no", "g:no:0.3:0.4"),
        ("g:no::5", "g:no:0:5"),
        ("g:fp::0.4", "g:fp:0:0.4"),
        ("c:300:200:nowe/c:150", "c:150:200:nowe"),
        ("c:300:200:nowe:5:6/c:150:90:so", "c:150:90:so:5:6"),
        ("c:300:200:nowe::6", "c:300:200:nowe:0:6"),
        ("c:300/c:0:200", "c:0:200"),
        ("ex:1:no:0:5/ex:1:so", "ex:1:so:0:5"),
        ("ex:1:no::5/ex:0", "ex:0:no:0:5"),
        ("exar:1:we:3/exar:1:ea::4", "exar:1:ea:3:4"),
        ("rs:fit:5:6:1:1:no:0:8/s:7::0", "rs:fit:7:6:0:1:no:0:8"),
        ("rs:fill:5:6/rs::9", "rs:fill:9:6"),
        ("t:10:ff0000:1/t:20", "t:20::1"),
        ("t:10::1:1/t:20::0", "t:20::0:1"),
        ("t:10/t:", "t:"),
        ("fl:1/fl::1", "fl:1:1"),
        ("fl:1:1/fl:0", "fl:0:1"),
        ("pd:1:2:3:4/pd:9", "pd:9:9:9:9"),
        ("pd:1:2:3:4/pd::5", "pd:1:5:1:5"),
        ("wm:0.5:soea:10:20:0.3/wm:1", "wm:1:soea:10:20:0.3"),
        ("wm:0.5:soea:10:20:0.3/wm:1:no", "wm:1:no:10:20:0.3"),
        ("wm:0.5:soea:10:20:0.3/wm:1:::5", "wm:1:soea:10:5:0.3"),
        ("wm:1:ce:0:0:0.1:50:60", "wm:1:ce:0:0:0.1"),
        ("wm:1:::::", "wm:1"),
        ("z:2/z:3:4", "z:3:4"),
        ("z:3:4/z:2", "z:2:2"),
        ("fq:jpg:50:webp:60/fq:jpg:40", "fq:jpg:40:webp:60"),
        ("skp:png/skp:jpg", "skp:jpg:png"),
        ("bg:ff0000/bg:", "bg:"),
        ("bg:ff0000/bg:1:2:3", "bg:1:2:3"),
        ("w%3A300/rs%3Afill%3A%3A200", "w:300/rs:fill::200"),
    ],
)
def test_options_that_come_again(given: str, meant: str) -> None:
    assert options(given) == options(meant)


@pytest.mark.parametrize(
    ("presets", "given", "meant"),
    [
        (("default=wm:0.3:soea:10:10:0.2",), "wm:1", "wm:1:soea:10:10:0.2"),
        (("a=g:no:0:60", "b=g:so"), "pr:a:b", "g:so:0:60"),
        (("a=c:300:200:nowe",), "pr:a/c:150", "c:150:200:nowe"),
        (("a=t:10:ff0000:1",), "t:5/pr:a", "t:10:ff0000:1"),
        (("default=rs:fill:5:6:1", "a=s:9"), "pr:a/h:3", "rs:fill:9:3:1"),
    ],
)
def test_presets_and_options_merge(presets: tuple[str, ...], given: str, meant: str) -> None:
    assert options(given, presets=presets) == options(meant)


@pytest.mark.parametrize("text", ["wm:", "wm:1:ce:0:0:0", "wm:1:ce:0:0:1:0:0:0", "c::5", "g:", "fp:", "ex:"])
def test_first_arguments_that_must_not_be_empty(text: str) -> None:
    if text == "ex:":  # a boolean that is none is false
        assert options(text) == Options()
        return
    with pytest.raises(DialectError) as caught:
        options(text)
    assert caught.value.status == 404


def test_an_extension_means_nothing_to_raw_files() -> None:
    asked = Imgproxy().parse(ForeignRequest(f"/unsafe/raw:1/{PLAIN}@nothing"))
    assert asked.options.format is None


@pytest.mark.parametrize(
    ("sent", "signed"),
    [
        (f"/w%3A300/h:9/{PLAIN}", f"/w:300/h:9/{PLAIN}"),
        (f"/w:300/{PLAIN}%3Apart", f"/w:300/{PLAIN}%3Apart"),
        (
            "/w%3A300/aHR0cHM6Ly9waWNzLmV4YW1wbGUvYS5qcGc.png",
            "/w:300/aHR0cHM6Ly9waWNzLmV4YW1wbGUvYS5qcGc.png",
        ),
        (f"//{PLAIN}", f"/{PLAIN}"),
        ("/w%3A300/plain/https:/pics.example/a.jpg", f"/w:300/{PLAIN}"),
    ],
)
def test_paths_are_mended_before_their_signature_is_checked(sent: str, signed: str) -> None:
    signature = sign(bytes.fromhex(KEY), bytes.fromhex(SALT), signed)
    found = Imgproxy(keys=(KEY,), salts=(SALT,)).parse(ForeignRequest(f"/{signature}{sent}"))
    assert found.signed
    with pytest.raises(DialectError) as caught:
        Imgproxy(keys=(KEY,), salts=(SALT,)).parse(ForeignRequest(f"/{signature}{sent}x"))
    assert caught.value.status == 403


def test_an_empty_file_name_is_none() -> None:
    url = Imgproxy().parse(ForeignRequest("/unsafe/fn:a/fn:/plain/https://pics.example/a.png"))
    assert url.delivery.filename is None
