"""URLs that the command prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from imgsvc_cli.app import run
from imgsvc_core import Spec
from imgsvc_http.settings import Settings
from imgsvc_urls import Signer, parse, verify
from tests.http.ways.web_origin import Page, web_origin
from tests.support import encoded

SECRET = "a secret of a signing key"
START = "/1.0/image/unsigned"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["url", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["url", *arguments]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    return found.err


def test_signed_urls(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMGSVC_SIGNING_SECRET", f"{SECRET}\r\n")  # as files of secrets end
    base = ["--base", "https://img.example.org/", "--key", "k1"]
    flags = ["--resize", "80x60", "--mode", "fit", "--no-resize-upscale", "--dpr", "2", "--download"]
    url = printed(capsys, "photos/a b.jpg", *base, *flags).rstrip("\n")
    path = url.removeprefix("https://img.example.org/1.0/image")
    found = parse(verify(path, {"k1": SECRET}))
    assert found.spec() == Spec(resize={"width": 160, "height": 120, "mode": "fit", "upscale": False})
    assert found.delivery.download
    assert Settings.load(environ={"IMGSVC_SIGNING_SECRET": SECRET, "HOME": "/"}) is not None


def test_one_line_for_each_source(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(
        capsys, "photos/a", "https://example.org/b", "--sepia", "60", "--preset", "x", "--preset", "y"
    )
    assert out.splitlines() == [
        f"{START}/preset:x/preset:y/sepia:60/photos/a",
        f"{START}/preset:x/preset:y/sepia:60/plain/https%3A%2F%2Fexample.org%2Fb",
    ]
    assert (
        printed(capsys, "https://example.org/b", "--base64") == f"{START}/b64/aHR0cHM6Ly9leGFtcGxlLm9yZy9i\n"
    )


def test_a_file_has_the_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"resize": {"width": 80}, "output": {"quality": 50}}))
    assert printed(capsys, "photos/a", "--spec", str(spec), "--quality", "70", "--version", "2") == (
        f"{START}/resize:80x/quality:70/version:2/photos/a\n"
    )


def test_srcset_and_picture(capsys: pytest.CaptureFixture[str]) -> None:
    signer = Signer("")
    flags = ["photos/a", "--resize", "80x60"]
    request = {"resize": {"width": 80, "height": 60}}
    assert printed(capsys, *flags, "--srcset") == signer.srcset("photos/a", request) + "\n"
    assert printed(capsys, *flags, "--srcset", "--widths", "40,80") == (
        signer.srcset("photos/a", request, widths=[40, 80]) + "\n"
    )
    assert printed(capsys, *flags, "--srcset", "--densities", "1,1.5") == (
        signer.srcset("photos/a", request, densities=[1, 1.5]) + "\n"
    )
    assert printed(
        capsys, *flags, "--picture", "A shoe", "--sizes", "50vw", "--formats", "webp,png", "--widths", "40"
    ) == (
        signer.picture("photos/a", request, alt="A shoe", sizes="50vw", formats=["webp", "png"], widths=[40])
        + "\n"
    )
    assert printed(capsys, *flags, "--picture", "") == signer.picture("photos/a", request, alt="") + "\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["photos/a", "--resize", "80"],
            "Option '--resize' must be a size such as 800x600, 800x or x600, got '80'",
        ),
        (
            ["photos/a", "--quality", "0"],
            "Output 'quality' parameter must be integer within 1 to 100 range, got 0",
        ),
        (["photos/a", "--dpr", "9"], "URL 'dpr' parameter must be float within 0.1 to 5 range, got 9"),
        (["photos/a", "--expires", "soon"], "URL 'expires' parameter must be integer within 0 to"),
        (["photos/a", "--preset", "A"], "The name of a preset must be 1 to 63 lower-case letters"),
        (["a.jpg"], 'The source of the URL must be a URL, or the name of an origin and a path, got "a.jpg"'),
        (["photos/a", "--base", "img"], "The address of the service must be a URL"),
        (["photos/a", "--key", "k1"], "--key needs the secret of the key in the environment variable"),
        (["photos/a", "--widths", "40"], "--widths needs --srcset or --picture."),
        (["photos/a", "--width", "40"], "'--widths'?"),
        (["photos/a", "--sizes", "40", "--srcset"], "--sizes needs --picture."),
        (["photos/a", "--srcset", "--picture", ""], "Give one of --info, --srcset and --picture."),
        (
            ["photos/a", "--srcset", "--widths", "1", "--densities", "1"],
            "either --widths or --densities.",
        ),
        (["photos/a", "--srcset", "--widths", "x"], "--widths must be a list such as 320,640, got 'x'."),
        (["photos/a", "--srcset", "--densities", ""], "--densities must be a list such as 1,2, got ''."),
        (["photos/a", "--srcset", "--densities", "nan"], "URL 'dpr' parameter must be float within"),
        (["photos/a", "--picture", "", "--formats", "bmp"], "The formats must be some of jpg"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IMGSVC_SIGNING_SECRET", raising=False)
    assert words in told(capsys, *arguments)


def test_a_short_secret_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMGSVC_SIGNING_SECRET", "hunter2")
    err = told(capsys, "photos/a", "--key", "k1")
    assert "at least 16 characters" in err
    assert "hunter2" not in err


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A picture of 96 x 64 pixels in an origin of the settings."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "ü %.jpg").write_bytes(encoded.jpeg().data)
    return tmp_path


@pytest.mark.parametrize("way", ["folder", "web", "token", "url"])
def test_sizes_are_those_of_a_source_that_can_be_read(
    way: str, photo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with web_origin() as server:
        server.pages["/deep/%C3%BC%20%25.jpg" + ("?sig=a" if way == "token" else "")] = Page(
            encoded.jpeg().data
        )
        origins = {"folder": f"file://{photo}", "web": server.url, "token": f"{server.url}?sig=a"}
        monkeypatch.setenv("IMGSVC_DELIVERY_ORIGINS", json.dumps(origins))
        source = f"{server.url}/deep/%C3%BC%20%25.jpg" if way == "url" else f"{way}/deep/ü %.jpg"
        page = printed(capsys, source, "--picture", "A face", "--formats", "webp", "--widths", "50,100")
        assert 'width="96" height="64"' in page
        assert re.findall(r" (\d+)w", page) == ["50", "96"]
        assert " 1x" in printed(capsys, source, "--resize", "80x", "--srcset", "--densities", "1,2")


def test_a_source_that_cannot_be_read_is_told_and_its_size_left_out(
    photo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMGSVC_DELIVERY_ORIGINS", json.dumps({"photos": f"file://{photo}"}))
    for source, told in (("photos/none.jpg", "photos/none.jpg cannot be read"), ("others/none.jpg", "")):
        assert run(["url", source, "--picture", ""]) == 0
        found = capsys.readouterr()
        assert "height=" not in found.out
        assert "1280w" in found.out
        assert told in found.err
    assert run(["url", "photos/none.jpg"]) == 0
    assert capsys.readouterr().err == "", "a URL alone needs no size"


def test_files_of_this_machine_tell_no_size_and_wrong_settings_are_told(
    photo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(photo)
    Path("urn:photo.jpg").write_bytes(encoded.jpeg().data)
    monkeypatch.setenv("IMGSVC_SERVER_PORT", "none")
    assert "1280w" in printed(capsys, "urn:photo.jpg", "--srcset")
    assert run(["url", "photos/a.jpg", "--srcset"]) == 0
    found = capsys.readouterr()
    assert "1280w" in found.out
    assert "photos/a.jpg cannot be read, so its size is not known: Setting 'server.port'" in found.err


def test_the_url_that_tells_about_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    url = printed(capsys, "photos/shoe.jpg", "--info", "--resize", "80x", "--facts", "palette,lqip")
    assert url == "/1.0/info/unsigned/resize:80x/facts:palette%2Clqip/photos/shoe.jpg\n"
    assert "Give one of --info, --srcset and --picture" in told(capsys, "a/b", "--info", "--srcset")
