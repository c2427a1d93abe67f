"""The same words and the same card in Chromium and as layers: places, scripts, and the looks of all."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips

import imgsvc_core as imgsvc
from tests.support import browser
from tests.support.photos import as_vips, coffee

pytest.importorskip("fontpkg_inter")
pytestmark = pytest.mark.processes

BLOCKS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("font-size: 48px; font-weight: 700", {"font": "Inter Bold", "size": 48}, {}),
    ("font-size: 24px", {"size": 24}, {}),
    ("font-size: 16px; font-style: italic", {"font": "Inter Italic", "size": 16}, {}),
    ("font-size: 32px; width: 400px", {"size": 32}, {"width": 400}),
    ("font-size: 24px; width: 400px; text-align: center; letter-spacing: 2px; line-height: 1.5",
     {"size": 24, "align": "center", "letter_spacing": 2, "line_height": 1.5}, {"width": 400}),
]  # fmt: skip
TITLE, SUBTITLE = "Autumn in the mountains", "What quick foxes do when the leaves fall"
WORDS = "Autumn in the mountains, and quick foxes"
HEIGHT = 160


def folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


def face(family: str, path: Path, style: str = "normal") -> str:
    what = f"font-family: {family}; src: url('{path.as_uri()}'); font-weight: 100 900; font-style: {style}"
    return f"@font-face {{ {what} }}"


def font(slant: str) -> str:
    path = folder_of("fontpkg_inter") / "files" / f"Inter{slant}[opsz,wght].ttf"
    return face("Inter", path, "italic" if slant else "normal")


def shown(folder: Path, page: str, width: int, height: int) -> Any:
    """Pixels of a page in Chromium."""
    (folder / "page.html").write_text(f"<!doctype html><meta charset=utf-8>{page}", encoding="utf-8")
    command = [browser.program(), "--headless", "--hide-scrollbars", *browser.FLAGS]
    target = folder / "shot.png"
    subprocess.run(
        [
            *command, f"--window-size={width},{height}", f"--user-data-dir={folder / 'user'}",
            f"--screenshot={target}", (folder / "page.html").as_uri(),
        ],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return pyvips.Image.new_from_file(str(target)).numpy()[..., :3]


@pytest.fixture(scope="module")
def shot(tmp_path_factory: pytest.TempPathFactory) -> Any:
    blocks = "".join(
        f'<div style="position: absolute; left: 20px; top: {HEIGHT * place + 10}px; {style}">{WORDS}</div>'
        for place, (style, _, _) in enumerate(BLOCKS)
    )
    style = f"{font('')} {font('-Italic')} body {{ margin: 0; font-family: Inter; line-height: 1.2 }}"
    page = f"<style>{style}</style>{blocks}"
    return shown(tmp_path_factory.mktemp("chromium"), page, 1100, HEIGHT * len(BLOCKS))


def ink(pixels: Any) -> Any:
    """Left, top, right and bottom of what is dark."""
    dark = pixels.min(-1) < 128
    rows, columns = np.flatnonzero(dark.any(1)), np.flatnonzero(dark.any(0))
    return np.array([columns[0], rows[0], columns[-1], rows[-1]])


@pytest.mark.parametrize("place", range(len(BLOCKS)))
def test_words_lie_where_chromium_puts_them(place: int, shot: Any) -> None:
    _, text, layer = BLOCKS[place]
    paper = as_vips(np.full((HEIGHT, 1100, 3), 255, np.uint8)).pngsave_buffer()
    request = {"layers": [{"text": {"text": WORDS, **text}, "x": 20, "y": 10, **layer}]}
    made = imgsvc.process(paper, request).data
    assert made is not None
    ours = pyvips.Image.new_from_buffer(made, "").numpy()[..., :3]
    theirs = shot[HEIGHT * place : HEIGHT * (place + 1)]
    assert np.abs(ink(ours) - ink(theirs)).max() <= 1
    darkness = (255 - ours.astype(int)).sum() / (255 - theirs.astype(int)).sum()
    assert abs(darkness - 1) < 0.1


SAMPLES = {
    "Latin": ("Autumn in the mountains", "NotoSans"),
    "Greek": ("Φθινόπωρο στα βουνά", "NotoSans"),
    "Cyrillic": ("Осень в горах", "NotoSans"),
    "Arabic": ("الخريف في الجبال", "NotoSansArabic"),
    "Devanagari": ("पहाड़ों में शरद ऋतु", "NotoSansDevanagari"),
    "Thai": ("ฤดูใบไม้ร่วงที่ภูเขา", "NotoSansThai"),
    "Hebrew": ("סתיו בהרים", "NotoSansHebrew"),
    "Chinese": ("山里的秋天", "NotoSansCJK"),
    "Emoji": ("🍂🏔🦊🎉", "NotoEmoji"),
}


@pytest.fixture(scope="module", params=[0, 6], ids=["close", "spaced"])
def spacing(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def scripts(spacing: int, tmp_path_factory: pytest.TempPathFactory) -> Any:
    fonts = folder_of("manimgx_fonts")
    paths = {name: fonts / f"{name}[wght].ttf" for _, name in SAMPLES.values()}
    paths["NotoSansCJK"] = folder_of("manimgx_fonts_cjk") / "NotoSansCJK-VF.otf.ttc"
    faces = "".join(face(name, path) for name, path in paths.items())
    style = f"position: absolute; left: 20px; font-size: 48px; letter-spacing: {spacing}px; white-space: pre"
    blocks = "".join(
        f'<div style="{style}; top: {100 * place + 10}px; font-family: {name}">{words}</div>'
        for place, (words, name) in enumerate(SAMPLES.values())
    )
    page = f"<style>{faces} body {{ margin: 0; line-height: 1.2 }}</style>{blocks}"
    return shown(tmp_path_factory.mktemp("scripts"), page, 1000, 100 * len(SAMPLES))


@pytest.mark.parametrize("script", SAMPLES)
def test_letters_of_scripts_are_joined_and_spaced_as_in_chromium(
    script: str, spacing: int, scripts: Any
) -> None:
    words, _ = SAMPLES[script]
    paper = np.full((100, 1000, 3), 255, np.uint8)
    text = {"text": words, "font": "Noto Sans", "size": 48, "letter_spacing": spacing}
    layer = {"text": text, "x": 20, "y": 10}
    ours = np.asarray(imgsvc.process(paper, {"layers": [layer]}).to_numpy())
    place = 100 * list(SAMPLES).index(script)
    theirs = scripts[place : place + 100]
    (left, top, right, bottom), other = ink(ours), ink(theirs)
    assert abs((right - left) / (other[2] - other[0]) - 1) < 0.02
    assert abs((bottom - top) - (other[3] - other[1])) <= 2
    shift = other[1] - top, other[0] - left
    mine, wanted = (pixels.min(-1) < 128 for pixels in (ours, theirs))
    shares = []
    for down, across in itertools.product((-1, 0, 1), repeat=2):
        moved = np.roll(mine, (shift[0] + down, shift[1] + across), axis=(0, 1))
        shares.append((moved & wanted).sum() / (moved | wanted).sum())
    assert max(shares) > (0.7 if spacing else 0.8)  # without spacing, 0.74 and less in bold


def test_a_card_looks_as_in_chromium(tmp_path: Path) -> None:
    photo = as_vips(coffee()).thumbnail_image(600, height=315, crop="centre")
    photo.pngsave(str(tmp_path / "photo.png"))
    paper = (tmp_path / "photo.png").read_bytes()
    words = "left: 30px; color: white; white-space: nowrap"
    parts = (
        "background: linear-gradient(180deg, rgba(0,0,0,0), rgba(0,0,0,.8)); width: 600px; height: 315px",
        "left: 440px; top: 30px; width: 120px; height: 60px; border-radius: 12px; background: #ff3300",
        "left: 480px; top: 120px; width: 80px; height: 80px; border-radius: 50%; background: #3cf8; "
        "mix-blend-mode: multiply",
    )
    page = "".join(f'<div style="position: absolute; {style}"></div>' for style in parts)
    page += f'<div style="position: absolute; {words}; top: 200px; font: 700 44px/1.2 Inter">{TITLE}</div>'
    page += f'<div style="position: absolute; {words}; top: 260px; font: 20px/1.2 Inter">{SUBTITLE}</div>'
    page = f"<style>{font('')} body {{ margin: 0; background: url(photo.png) no-repeat }}</style>{page}"
    theirs = shown(tmp_path, page, 600, 315)
    layers = [
        {"gradient": {"from": "00000000", "to": "cc000000"}},
        {"shape": {"kind": "rectangle", "color": "ff3300"}, "x": 440, "y": 30, "width": 120, "height": 60,
         "radius": 12},
        {"shape": {"kind": "ellipse", "color": "8833ccff"}, "x": 480, "y": 120, "width": 80, "height": 80,
         "blend": "multiply"},
        {"text": {"text": TITLE, "font": "Inter Bold", "size": 44, "color": "ffffff"}, "x": 30, "y": 200},
        {"text": {"text": SUBTITLE, "size": 20, "color": "ffffff"}, "x": 30, "y": 260},
    ]  # fmt: skip
    ours = np.asarray(imgsvc.process(paper, {"layers": layers}).to_numpy())
    assert ours.shape == theirs.shape
    assert imgsvc.compare(ours, theirs).dssim < 0.03  # edges of letters are 64 levels lighter or darker
    assert imgsvc.compare(ours, np.roll(theirs, 1, axis=1)).dssim > 0.1
    above = slice(0, 190)
    assert np.abs(ours[above].astype(int) - theirs[above]).mean() < 0.5
