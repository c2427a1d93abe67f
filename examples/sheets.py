"""Labeled contact sheets."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import imgsvc_core as imgsvc

_PAPER, _INK, _FAINT, _PALE = "#ffffff", "#1b1f24", "#667077", "#e6def2"
_GAP = 14
_DUSK = b"""<svg xmlns="http://www.w3.org/2000/svg" width="1600" height="560">
  <linearGradient id="sky" x2="0" y2="1">
    <stop offset="0" stop-color="#141c4f"/><stop offset=".7" stop-color="#5a3c8c"/>
    <stop offset="1" stop-color="#c8694f"/>
  </linearGradient>
  <path fill="url(#sky)" d="M0 0H1600V560H0Z"/>
  <path fill="#2d1e4f" d="M0 470 210 400 420 480 690 390 960 500 1200 410 1420 480 1600 420V560H0Z"/>
  <path fill="#170f2e" d="M0 540 260 460 520 530 820 450 1160 540 1600 470V560H0Z"/>
</svg>"""


@attrs.frozen
class Cell:
    """A picture in any readable format, with a title and a smaller line below it."""

    picture: bytes
    title: str
    caption: str = ""


def sheet(rows: Sequence[Sequence[Cell]], *, width: int, height: int, font: int) -> Image.Image:
    """Show each picture inside ``width`` x ``height`` pixels, above its title and caption."""
    title, small = ImageFont.load_default(font), ImageFont.load_default(font - 2)
    line = round(font * 1.3)
    step_x, step_y = width + _GAP, height + 3 * line + 4 + _GAP
    paper = Image.new("RGB", (max(map(len, rows)) * step_x + _GAP, len(rows) * step_y + _GAP), _PAPER)
    pen = ImageDraw.Draw(paper)
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            left, top = _GAP + x * step_x, _GAP + y * step_y
            paper.paste(_shown(cell.picture, width, height), (left, top))
            pen.text((left, top + height + 4), cell.title, _INK, title)
            caption = _wrapped(cell.caption, width, font)
            pen.text((left, top + height + 4 + line), caption, _FAINT, small)
    return paper


def cover(cells: Sequence[Cell], logo: bytes, title: str, lines: Sequence[str]) -> Image.Image:
    """Show a logo, a title and lines below it beside six pictures, in front of mountains at dusk."""
    size, gap, margin, top = 214, 30, 64, 30
    paper = _still(_DUSK, 1600, 560)
    pen = ImageDraw.Draw(paper)
    paper.alpha_composite(_still(logo, 104, 104), (margin, 84))
    pen.text((margin + 128, 136), title, _PAPER, ImageFont.load_default(96), anchor="lm")
    for number, line in enumerate(lines):
        pen.text((margin, 226 + 44 * number), line, _PALE, ImageFont.load_default(32))
    for number, cell in enumerate(cells):
        left = paper.width - margin - 3 * size - 2 * gap + number % 3 * (size + gap)
        upper = top + number // 3 * (size + 44)
        still = imgsvc.inspect(cell.picture).frames == 1
        picture = cell.picture if still else _frames(cell.picture)[1]
        paper.alpha_composite(_still(picture, size, size), (left, upper))
        pen.text((left + size / 2, upper + size + 6), cell.caption, _PALE, ImageFont.load_default(20), "ma")
    return paper.convert("RGB")


def save(paper: Image.Image, target: Path, *, max_bytes: int = 290_000) -> None:
    """Write a sheet, by this library, into at most so many bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    spec = imgsvc.Spec(output=imgsvc.Output(quality=88, max_bytes=max_bytes))
    print(f"{target}: {imgsvc.process(np.asarray(paper), spec, target).output.bytes:,} bytes")


def _wrapped(text: str, width: int, font: int) -> str:
    return "\n".join(textwrap.wrap(text, round(2 * width / font)))


def _shown(picture: bytes, width: int, height: int) -> Image.Image:
    """The picture inside a frame of the given size, on paper; of an animation four frames."""
    shown = Image.new("RGBA", (width, height), _PAPER)
    if imgsvc.inspect(picture).frames == 1:
        shown.alpha_composite(_still(picture, width, height))
    else:
        across, down = (width - 6) // 2, (height - 6) // 2
        for part, frame in enumerate(_frames(picture)):
            shown.alpha_composite(
                _still(frame, across, down), (part % 2 * (across + 6), part // 2 * (down + 6))
            )
    return shown.convert("RGB")


def _frames(picture: bytes) -> list[bytes]:
    """Four frames of an animation, as PNG."""
    lossless = imgsvc.Spec(output=imgsvc.Output(format="webp", lossless=True))
    animation = Image.open(io.BytesIO(_bytes(picture, lossless)))
    frames = []
    for part in range(4):
        animation.seek(animation.n_frames * (2 * part + 5) // 14)
        encoded = io.BytesIO()
        animation.save(encoded, "png")
        frames.append(encoded.getvalue())
    return frames


def _still(picture: bytes, width: int, height: int) -> Image.Image:
    """The picture in the middle of a transparent frame of the given size."""
    box = imgsvc.Resize(width=width, height=height, mode="fill", upscale=False)
    spec = imgsvc.Spec(resize=box, output=imgsvc.Output(format="png"))
    return Image.open(io.BytesIO(_bytes(picture, spec))).convert("RGBA")


def _bytes(picture: bytes, spec: imgsvc.Spec) -> bytes:
    data = imgsvc.process(picture, spec).data
    assert data is not None
    return data
