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

_PAPER, _INK, _FAINT = "#ffffff", "#1b1f24", "#667077"
_GAP = 14


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


def strip(cells: Sequence[Cell], *, width: int, height: int, font: int) -> Image.Image:
    """Show pictures of one height in a row, each beside its title and caption."""
    title, small = ImageFont.load_default(font), ImageFont.load_default(font - 2)
    sizes = [imgsvc.inspect(cell.picture).upright_size for cell in cells]
    across = [round(height * wide / high) for wide, high in sizes]
    room = (width - sum(across)) // len(cells) - 2 * _GAP
    paper = Image.new("RGB", (width, height), _PAPER)
    pen = ImageDraw.Draw(paper)
    left = 0
    for cell, picture in zip(cells, across, strict=True):
        paper.paste(_shown(cell.picture, picture, height), (left, 0))
        left += picture + _GAP
        pen.text((left, 0), cell.title.replace(" to ", "\nto "), _INK, title)
        pen.text((left, 3 * font), _wrapped(cell.caption, room, font), _FAINT, small)
        left += room + _GAP
    return paper


def save(paper: Image.Image, target: Path, *, max_bytes: int = 290_000) -> None:
    """Write a sheet, by this library, into at most so many bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    spec = imgsvc.Spec(output=imgsvc.Output(quality=88, max_bytes=max_bytes))
    print(f"{target}: {imgsvc.process(np.asarray(paper), spec, target).output.bytes:,} bytes")


def _wrapped(text: str, width: int, font: int) -> str:
    return "\n".join(textwrap.wrap(text, round(2 * width / font)))


def _shown(picture: bytes, width: int, height: int) -> Image.Image:
    """The picture inside a frame of the given size; of an animation four frames."""
    frames = imgsvc.inspect(picture).frames
    if frames == 1:
        return _still(picture, width, height)
    spec = imgsvc.Spec(output=imgsvc.Output(format="webp", lossless=True))
    animation = Image.open(io.BytesIO(_bytes(picture, spec)))
    shown = Image.new("RGB", (width, height), _PAPER)
    for part in range(4):
        animation.seek(frames * (2 * part + 5) // 14)
        encoded = io.BytesIO()
        animation.save(encoded, "png")
        across, down = (width - 6) // 2, (height - 6) // 2
        place = (part % 2 * (across + 6), part // 2 * (down + 6))
        shown.paste(_still(encoded.getvalue(), across, down), place)
    return shown


def _still(picture: bytes, width: int, height: int) -> Image.Image:
    box = imgsvc.Resize(width=width, height=height, mode="fill", upscale=False)
    spec = imgsvc.Spec(resize=box, output=imgsvc.Output(format="png"))
    still = Image.open(io.BytesIO(_bytes(picture, spec))).convert("RGBA")
    paper = Image.new("RGBA", still.size, _PAPER)
    paper.alpha_composite(still)
    return paper.convert("RGB")


def _bytes(picture: bytes, spec: imgsvc.Spec) -> bytes:
    data = imgsvc.process(picture, spec).data
    assert data is not None
    return data
