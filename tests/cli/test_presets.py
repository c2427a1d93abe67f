"""Presets of a settings file, as the command uses them."""

from __future__ import annotations

from pathlib import Path

import pytest

import imgsvc_core as imgsvc
from imgsvc_cli.app import run
from tests.support.photos import as_vips, coffee

SETTINGS = """
[server]
port = 443

[presets.card]
resize = {width = 60, height = 40, mode = "fit"}
output = {format = "webp", quality = 50}

[presets.wide.resize]
width = 80
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IMGSVC_CONFIG", raising=False)
    (tmp_path / "imgsvc.toml").write_text(SETTINGS)
    (tmp_path / "spec.json").write_text('{"output": {"format": "png", "quality": null}, "crop": {"x": 1}}')
    as_vips(coffee()).jpegsave(str(tmp_path / "photo.jpg"))
    return tmp_path


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["explain", "--size", "600x400", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["explain", "--size", "600x400", *arguments]) == 2
    return capsys.readouterr().err


def test_a_picture_is_processed_by_presets(folder: Path) -> None:
    given = ["--preset", "card", "--preset", "wide", "--config", "imgsvc.toml"]
    assert run(["process", "photo.jpg", *given, "--resize-height", "30"]) == 0
    info = imgsvc.inspect(folder / "photo-out.webp")
    assert (info.format, info.width, info.height) == ("webp", 80, 30)


def test_the_settings_file_may_be_named_by_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named = explained(capsys, "--preset", "card", "--config", "imgsvc.toml")
    monkeypatch.setenv("IMGSVC_CONFIG", str(folder / "imgsvc.toml"))
    assert explained(capsys, "--preset", "card") == named
    assert named == explained(
        capsys, "--resize", "60x40", "--mode", "fit", "--format", "webp", "--quality", "50"
    )


def test_gravity_belongs_to_the_resize_of_a_preset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--crop", "500x300", "--gravity", "top"]
    assert explained(capsys, "--preset", "card", "--config", "imgsvc.toml", *flags) == explained(
        capsys, "--crop", "500x300", "--resize", "60x40", "--mode", "fit", "--resize-gravity", "top",
        "--format", "webp", "--quality", "50",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--preset", "cart"], "There is no preset 'cart'; known are card, wide"),
        (
            ["--preset", "card", "--mode", "auto", "--gravity", "top"],
            "when 'mode' is auto, after preset 'card'",
        ),
        (["--preset", "wide", "--spec", "spec.json"], "is required when 'mode' is rect, after preset 'wide'"),
    ],
)
def test_mistakes_name_the_preset(
    arguments: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in told(capsys, *arguments, "--config", "imgsvc.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[presets", "The settings file 'other.toml' must be readable TOML"),
        ("presets = 5", "Presets must be a table such as [presets.card], got 5"),
        (
            "[presets.card.resize]\nwidth = 0",
            "Resize 'width' parameter must be integer within 1 to 65535 range, got 0, in preset 'card'",
        ),
        ("[presets.card]\npreset = 'wide'", "Preset 'card' cannot name other presets"),
        ("[presets.Card]", "Preset 'Card' must have a name of 1 to 63 lower-case letters"),
        ("", "There is no preset 'card'; none is defined"),
    ],
)
def test_mistakes_in_the_file_are_told(
    text: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.toml").write_text(text)
    assert words in told(capsys, "--preset", "card", "--config", "other.toml")
    assert "needs a settings file: name it with --config" in told(capsys, "--preset", "card")
    assert "must be readable TOML: No such file" in told(capsys, "--preset", "card", "--config", "none.toml")
    assert "must be readable TOML: No such file" in told(capsys, "--config", "none.toml")  # without a preset
