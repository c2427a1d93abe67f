"""The same words in Chromium and as layers: the same lines, at the same places."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips

import imgsvc_core as imgsvc
from tests.support import requires
from tests.support.photos import as_vips

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
WORDS = "Autumn in the mountains, and quick foxes"
HEIGHT = 160


def font(slant: str) -> str:
    spec = importlib.util.find_spec("fontpkg_inter")
    assert spec is not None
    assert spec.submodule_search_locations
    path = Path(next(iter(spec.submodule_search_locations)), "files", f"Inter{slant}[opsz,wght].ttf")
    style = "italic" if slant else "normal"
    face = f"font-family: Inter; src: url('{path.as_uri()}'); font-weight: 100 900; font-style: {style}"
    return f"@font-face {{ {face} }}"


@pytest.fixture(scope="module")
def shot(tmp_path_factory: pytest.TempPathFactory) -> Any:
    program = requires.program("chromium", "chromium-browser", "google-chrome")
    folder = tmp_path_factory.mktemp("chromium")
    blocks = "".join(
        f'<div style="position: absolute; left: 20px; top: {HEIGHT * place + 10}px; {style}">{WORDS}</div>'
        for place, (style, _, _) in enumerate(BLOCKS)
    )
    style = f"{font('')} {font('-Italic')} body {{ margin: 0; font-family: Inter; line-height: 1.2 }}"
    page = f"<style>{style}</style>{blocks}"
    (folder / "page.html").write_text(page)
    size = f"--window-size=1100,{HEIGHT * len(BLOCKS)}"
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size]
    target = folder / "shot.png"
    address = (folder / "page.html").as_uri()
    subprocess.run(
        [*command, f"--user-data-dir={folder / 'user'}", f"--screenshot={target}", address],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return pyvips.Image.new_from_file(str(target)).numpy()[..., :3]


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
    assert np.abs(ink(ours) - ink(theirs)).max() <= 3
    darkness = (255 - ours.astype(int)).sum() / (255 - theirs.astype(int)).sum()
    assert abs(darkness - 1) < 0.1
