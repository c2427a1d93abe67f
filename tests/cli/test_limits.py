"""The option ``--limit`` of the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import imgsvc_core as imgsvc
from imgsvc_cli.app import run
from tests.support.photos import as_vips, coffee

SAVED = {"process": ["-o", "out.png"], "batch": ["out"], "explain": [], "inspect": []}


@pytest.fixture
def photo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    as_vips(coffee()).jpegsave("photo.jpg", Q=92)
    return "photo.jpg"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("source_bytes", "source_too_large"),
        ("source_pixels", "image_too_large"),
        ("output_pixels", "output_too_large"),
        ("output_side", "output_too_large"),
        ("memory_bytes", "memory_limit_exceeded"),
    ],
)
def test_each_limit_is_heeded(name: str, slug: str, photo: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["process", photo, "-o", "out.png", "--json"]
    assert run([*arguments, "--limit", f"{name}=1"]) == 4
    assert json.loads(capsys.readouterr().out)["error"] == slug
    assert not Path("out.png").exists()
    assert run([*arguments, "--limit", f"{name}=1", "--limit", f"{name}=100000000000"]) == 0
    assert run([*arguments, "--limit", f"{name}=none"]) == 0


def test_frames_are_limited(photo: str) -> None:
    views = imgsvc.process(photo, {"resize": {"width": 50}, "output": {"format": "gif"}}).to_pil()
    views.save("moving.gif", save_all=True, append_images=[views.rotate(90)])
    for name, most in (("frames", 1), ("frame_pixels", 3000)):
        assert run(["process", "moving.gif", "-o", f"{name}.gif", "--limit", f"{name}={most}"]) == 4


def test_channels_are_limited(photo: str) -> None:
    imgsvc.process(photo, target="photo.tiff")
    assert run(["process", "photo.tiff", "-o", "out.png", "--limit", "channels=2"]) == 4
    assert run(["process", "photo.tiff", "-o", "out.png", "--limit", "channels=3"]) == 0


def test_explain_and_inspect_heed_limits(photo: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", photo, "--limit", "memory_bytes=1000"]) == 4
    assert "bytes of memory for this image; at most 1,000 are allowed" in capsys.readouterr().err
    assert run(["inspect", photo, "--limit", "source_bytes=1000"]) == 4
    assert "at most 1,000 are allowed: send a smaller file" in capsys.readouterr().err
    assert run(["inspect", photo, "--limit", "source_bytes=none", "--limit", "seconds=5"]) == 0


def test_inspect_heeds_its_seconds(photo: str, capsys: pytest.CaptureFixture[str]) -> None:
    rules = "".join(f".a{number} * *{{fill:red}}" for number in range(300))
    items = "<g>" * 60 + '<path class="a1"/>' * 2000 + "</g>" * 60  # a second, which nothing stops
    Path("slow.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><style>{rules}</style>{items}</svg>'
    )
    assert run(["inspect", "slow.svg", "--limit", "seconds=0.2"]) == 4
    assert "longer than the 0.2 seconds that are allowed" in capsys.readouterr().err


def test_inspect_has_no_limit_on_bytes_of_its_own(
    photo: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("large.jpg", "wb") as file:
        file.write(Path(photo).read_bytes())
        file.truncate(60_000_000)
    assert run(["inspect", "large.jpg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == 60_000_000


@pytest.mark.parametrize("command", ["process", "explain", "inspect"])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("bytes=1", "--limit must name one of source_bytes, "),
        ("seconds=soon", "--limit seconds must be a number or none, got 'soon'"),
        ("seconds=0", "Limits 'seconds' parameter must be a positive number or null, got 0"),
        ("source_bytes=1.5", "Limits 'source_bytes' parameter must be a positive integer or null, got 1.5"),
    ],
)
def test_wrong_limits(
    command: str, given: str, told: str, photo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, photo, *SAVED[command], "--limit", given]) == 2
    assert told in capsys.readouterr().err


def test_a_batch_heeds_limits(photo: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("in").mkdir()
    Path(photo).rename("in/photo.jpg")
    Path("spec.json").write_text('{"output": {"format": "png"}}')
    arguments = ["batch", "in", "out", "--spec", "spec.json"]
    assert run([*arguments, "--limit", "output_side=10"]) == 7
    assert "at most 10 are allowed per side" in capsys.readouterr().err
