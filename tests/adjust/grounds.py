"""Pictures on flat grounds, drawn by code and cut out of photographs of clear origin."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import numpy as np
import skimage.data
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from tests.support.photos import Pixels, photo

Painter = Callable[[], Pixels]

_SIZE = (300, 225)
_GROUNDS = {
    "white": (255, 255, 255),
    "off-white": (246, 246, 243),
    "gray": (225, 225, 225),
    "black": (0, 0, 0),
    "blue": (40, 90, 160),
}
# Middle and radii of the ellipse that is cut out: right, down, across, along.
_SUBJECTS = {
    "cup": ("coffee", (278, 195, 208, 190)),
    "portrait": ("astronaut", (225, 170, 125, 165)),
    "cat": ("cat", (190, 130, 150, 125)),
    "retina": ("retina", (705, 705, 640, 640)),
}


def pictures() -> dict[str, Painter]:
    """All of them by name; each function gives a fresh array of RGB or gray."""
    return dict(_pictures())


def _pictures() -> Iterator[tuple[str, Painter]]:
    for subject in _SUBJECTS:
        for ground in _GROUNDS:
            yield f"{subject} on {ground}", lambda s=subject, g=ground: product(s, _GROUNDS[g])
        yield f"{subject} with a shadow", lambda s=subject: product(s, shadow=True)
        yield f"{subject} as JPEG", lambda s=subject: as_jpeg(product(s, shadow=True))
        yield f"small {subject}", lambda s=subject: product(s, share=0.1)
        yield f"{subject} in gray", lambda s=subject: gray(product(s))
    for name in ("coffee", "astronaut", "cat"):
        for share in (0.15, 0.3, 0.45, 0.7):
            yield f"{name} in a margin of {share:.0%}", lambda n=name, s=share: in_margin(n, s)
    for share in (0.501, 0.8, 0.95):
        yield f"{share:.1%} pure white", lambda s=share: partly_white(s)
    for name, colors in {
        "colored": ((220, 40, 40), (250, 190, 30), (40, 90, 200)),
        "gray": ((120, 120, 120), (60, 60, 60), (180, 180, 180)),
        "black": ((0, 0, 0), (255, 255, 255), (0, 0, 0)),
        "pale": ((240, 220, 200), (225, 235, 245), (190, 190, 190)),
    }.items():
        yield f"{name} logo", lambda c=colors: logo(c)
        yield f"{name} logo in gray", lambda c=colors: gray(logo(c))
        yield f"{name} logo on night blue", lambda c=colors: logo(c, (20, 20, 30))
        yield f"{name} logo as JPEG", lambda c=colors: as_jpeg(logo(c))
    for dark in (False, True):
        mode = "dark" if dark else "light"
        yield f"{mode} screenshot", lambda d=dark: screenshot(d)
        yield f"{mode} screenshot in gray", lambda d=dark: gray(screenshot(d))
        yield f"{mode} screenshot with a photo", lambda d=dark: screenshot(d, photo("coffee"))
        yield f"{mode} screenshot as JPEG", lambda d=dark: as_jpeg(screenshot(d, photo("cat")))
        yield f"{mode} chart", lambda d=dark: chart(d)
        yield f"{mode} chart in gray", lambda d=dark: gray(chart(d))
    yield "silhouette", lambda: np.where(skimage.data.horse(), 255, 0).astype(np.uint8)
    yield "printed page", lambda: np.array(skimage.data.page())


def product(
    subject: str, ground: tuple[int, ...] = (255, 255, 255), *, share: float = 0.45, shadow: bool = False
) -> Pixels:
    name, (across, down, wide, high) = _SUBJECTS[subject]
    box = across - wide, down - high, across + wide, down + high
    scale = min(np.sqrt(share * _SIZE[0] * _SIZE[1] / (np.pi * wide * high)), 0.47 * _SIZE[1] / high)
    cut = Image.fromarray(photo(name)).crop(box).resize((round(2 * wide * scale), round(2 * high * scale)))
    mask = Image.new("L", (cut.width * 4, cut.height * 4), 0)
    ImageDraw.Draw(mask).ellipse((4, 4, mask.width - 4, mask.height - 4), fill=255)
    mask = mask.resize(cut.size, Image.Resampling.LANCZOS)
    canvas = Image.new("RGB", _SIZE, ground)
    left, top = (_SIZE[0] - cut.width) // 2, (_SIZE[1] - cut.height) // 2
    if shadow:
        shade = Image.new("L", _SIZE, 0)
        shade.paste(mask, (left + 5, top + 7))
        shade = shade.filter(ImageFilter.GaussianBlur(6)).point(lambda value: value // 2)
        canvas.paste(Image.new("RGB", _SIZE, (60, 60, 70)), (0, 0), shade)
    canvas.paste(cut, (left, top), mask)
    return np.array(canvas)


def in_margin(name: str, share: float, tone: int = 255) -> Pixels:
    """A photograph in a margin that takes a share of the picture."""
    pixels = photo(name)[::2, ::2]
    sides = [round(side * (1 / np.sqrt(1 - share) - 1) / 2) for side in pixels.shape[:2]]
    return np.pad(pixels, ((sides[0],) * 2, (sides[1],) * 2, (0, 0)), constant_values=tone)


def partly_white(share: float) -> Pixels:
    canvas = np.full((300, 300, 3), 255, np.uint8)
    rows = round(300 * (1 - share))
    canvas[:rows] = photo("coffee")[100 : 100 + rows, 100:400]
    return canvas


def logo(colors: tuple[tuple[int, ...], ...], ground: tuple[int, ...] = (255, 255, 255)) -> Pixels:
    image = Image.new("RGB", (1200, 800), ground)
    draw = ImageDraw.Draw(image)
    draw.ellipse((150, 150, 650, 650), fill=colors[0])
    draw.polygon([(400, 180), (620, 600), (180, 600)], fill=colors[1])
    draw.rectangle((340, 380, 460, 640), fill=colors[2])
    draw.text((690, 330), "ACME", fill=colors[0], font=ImageFont.load_default(150))
    return np.array(image.resize((300, 200), Image.Resampling.LANCZOS))


def screenshot(dark: bool, inset: Pixels | None = None) -> Pixels:
    light = (255, 255, 255), (243, 244, 246), (33, 36, 41)
    ground, panel, ink = ((24, 26, 30), (38, 41, 48), (220, 222, 226)) if dark else light
    font = ImageFont.load_default(13)
    image = Image.new("RGB", (600, 400), ground)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 600, 40), fill=(30, 110, 220))
    draw.rectangle((0, 40, 140, 400), fill=panel)
    for line in range(12):
        draw.text((10, 55 + 28 * line), f"Menu item {line}", fill=ink, font=font)
        draw.text((160, 55 + 28 * line), "The quick brown fox jumps over the dog", fill=ink, font=font)
    if inset is not None:
        image.paste(Image.fromarray(inset).resize((180, 130)), (400, 90))
    return np.array(image)


def chart(dark: bool) -> Pixels:
    ground, ink = (25, 230) if dark else (255, 30)
    image = Image.new("RGB", (960, 640), (ground,) * 3)
    draw = ImageDraw.Draw(image)
    draw.line([(60, 20), (60, 600), (940, 600)], fill=(ink,) * 3, width=4)
    heights = np.random.default_rng(3).integers(80, 540, (6, 4))
    for group, bars in enumerate(heights):
        for bar, height in enumerate(bars):
            color = ((31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40))[bar]
            left = 90 + 140 * group + 28 * bar
            draw.rectangle((left, 600 - int(height), left + 24, 598), fill=color)
    return np.array(image.resize((320, 213), Image.Resampling.LANCZOS))


def gray(pixels: Pixels) -> Pixels:
    return np.array(Image.fromarray(pixels).convert("L"))


def as_jpeg(pixels: Pixels) -> Pixels:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=80)
    return np.array(Image.open(file))
