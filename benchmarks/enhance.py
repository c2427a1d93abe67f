"""Show what ``auto.enhance`` does to what people upload: each picture before and after.

It draws products, photographs on white, screenshots, scans, logos and graphics, and puts them beside their
enhanced copies into ``build/enhanced.png``, or into another file that is named. The caption is the mean
change in levels of 255.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from examples.sheets import Cell, sheet
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from tests.support.photos import COLOR, as_vips, cut_out, photo

import imgsvc_core as imgsvc

SIZE = (300, 220)
GROUNDS = {"white": "#ffffff", "near white": "#f6f6f4", "gray": "#d8d8d8", "black": "#000000"}
LIGHTS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "as is": lambda picture: picture,
    "dark": lambda picture: picture.point(lambda level: level * 0.5),
    "dull": lambda picture: picture.point(lambda level: 70 + level * 0.45),
    "yellow": lambda picture: Image.fromarray(
        (np.asarray(picture) * np.array([1, 0.9, 0.65])).astype(np.uint8)
    ),
}
TEXT = "The quick brown fox jumps over the lazy dog. " * 12
INKS = ("#202124", "#1a73e8", "#d93025", "#188038", "#f9ab00")


def main(target: str = "build/enhanced.png") -> int:
    """Write the sheet."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    cells = []
    for name, picture in _pictures():
        before = np.asarray(picture.convert("RGB"))
        after = imgsvc.process(before, {"auto": {"enhance": True}, "output": {"format": "png"}})
        change = np.abs(after.to_numpy()[..., :3].astype(int) - before).mean()
        cells += [Cell(_png(before), name), Cell(after.data, "enhanced", f"{change:.1f}")]
    rows = [cells[start : start + 12] for start in range(0, len(cells), 12)]
    sheet(rows, width=150, height=110, font=11).save(Path(target))
    print(f"{target}: {len(cells) // 2} pictures")
    return 0


def _pictures() -> Iterator[tuple[str, Image.Image]]:
    for light, lit in LIGHTS.items():
        for name in COLOR:
            yield f"{name}, {light}", lit(_fitted(Image.fromarray(photo(name))))
    for ground, color in GROUNDS.items():
        for name in ("rocket", "coffee", "cat"):
            yield f"product {name} on {ground}", _on_ground(Image.fromarray(cut_out(name)), color, 0.8)
            yield f"photo {name} on {ground}", _on_ground(Image.fromarray(photo(name)), color, 0.55)
    for ink in INKS:
        yield f"logo {ink}", _logo("#ffffff", ink)
        yield f"logo on {ink}", _logo(ink, "#ffffff")
    for name, paper, ink in (
        ("scan", "#fdfdfd", "#111111"),
        ("gray scan", "#e4e2dc", "#3a3a3a"),
        ("old page", "#e8d9b0", "#4a3520"),
        ("dark page", "#8d8a84", "#1c1b1a"),
        ("screenshot", "#ffffff", "#202124"),
        ("dark screenshot", "#1e1e1e", "#d4d4d4"),
    ):
        yield name, _page(paper, ink, grain=6 if "screen" not in name else 0)
    yield "bars", _bars("#ffffff")
    yield "bars on gray", _bars("#eeeeee")


def _png(pixels: np.ndarray) -> bytes:
    return bytes(as_vips(pixels).pngsave_buffer())


def _fitted(picture: Image.Image) -> Image.Image:
    return picture.convert("RGB").resize(SIZE)


def _on_ground(picture: Image.Image, color: str, share: float) -> Image.Image:
    paper = Image.new("RGB", SIZE, color)
    part = picture.convert("RGBA").resize((round(SIZE[0] * share), round(SIZE[1] * share)))
    paper.paste(part, ((SIZE[0] - part.width) // 2, (SIZE[1] - part.height) // 2), part)
    return paper


def _logo(paper: str, ink: str) -> Image.Image:
    picture = Image.new("RGB", SIZE, paper)
    pen = ImageDraw.Draw(picture)
    pen.ellipse((30, 60, 130, 160), fill=ink)
    pen.text((145, 80), "imgsvc", ink, ImageFont.load_default(44))
    return picture


def _page(paper: str, ink: str, *, grain: int) -> Image.Image:
    picture = Image.new("RGB", SIZE, paper)
    pen = ImageDraw.Draw(picture)
    for line in range(12):
        pen.text((16, 12 + 16 * line), TEXT[7 * line : 7 * line + 44], ink, ImageFont.load_default(12))
    if not grain:
        return picture
    noise = np.random.default_rng(1).normal(0, grain, (*SIZE[::-1], 1))
    return Image.fromarray(
        np.clip(np.asarray(picture.filter(ImageFilter.GaussianBlur(0.6))) + noise, 0, 255).astype(np.uint8)
    )


def _bars(paper: str) -> Image.Image:
    picture = Image.new("RGB", SIZE, paper)
    pen = ImageDraw.Draw(picture)
    for place, ink in enumerate(INKS):
        pen.rectangle((30 + 50 * place, 180 - 30 * place, 65 + 50 * place, 200), fill=ink)
    return picture


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
