"""Transparent pictures laid on a color, in formats that could keep their alpha."""

from __future__ import annotations

import io
import subprocess
from typing import Any

import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from tests.support.decoded import decode
from tests.support.photos import Pixels, coffee, cut_out, deep
from tests.support.requires import program

COLOR = np.array((0xFF, 0xD9, 0xA0))
FLAT: dict[str, Any] = {"flatten": True, "background": "ffd9a0", "lossless": True}


def flat(source: Any, format: str = "png", **request: Any) -> Pixels:
    result = imgsvc.process(source, {**request, "output": {**FLAT, "format": format}})
    assert not result.output.alpha
    return decode(format, result.data)[0]


def blended(cut: Pixels, color: Any = COLOR) -> Any:
    alpha = cut[..., 3:] / np.iinfo(cut.dtype).max
    return cut[..., :3] * alpha + color * (1 - alpha)


@pytest.mark.parametrize("format", ["png", "webp"])
def test_the_color_shows_through_by_alpha(format: str) -> None:
    assert abs(flat(cut_out(), format) - blended(cut_out())).max() <= 1


def test_sixteen_bits_stay() -> None:
    found = flat(deep(cut_out()))
    assert found.dtype == np.uint16
    assert abs(found - blended(deep(cut_out()), COLOR * 257)).max() <= 2


def test_it_is_what_imagemagick_makes_of_it() -> None:
    file = io.BytesIO()
    Image.fromarray(cut_out()).save(file, "PNG")
    arguments = ["-background", "#FFD9A0", "-alpha", "remove", "-alpha", "off"]
    command = [program("magick", "convert"), "png:-", *arguments, "png:-"]
    expected = decode("png", subprocess.check_output(command, input=file.getvalue()))[0]
    assert abs(flat(cut_out()).astype(int) - expected).max() <= 1


def test_a_gray_picture_gets_the_color() -> None:
    gray = np.dstack([coffee()[..., 0], np.full(coffee().shape[:2], 51, np.uint8)])
    assert abs(flat(gray) - (gray[..., :1] * 0.2 + COLOR * 0.8)).max() <= 1


def test_all_that_became_transparent_is_laid_on_the_color() -> None:
    found = flat(coffee(), canvas={"width": 700}, adjust={"opacity": 0.5})
    assert (found[:, :50] == COLOR).all()
    assert abs(found[:, 50:650] - (coffee() / 2 + COLOR / 2)).max() <= 1


def test_animations_are_laid_on_the_color_frame_by_frame() -> None:
    frames = [Image.new("RGBA", (20, 20), (0, 0, blue, 0)) for blue in (0, 255)]
    for left, frame in enumerate(frames):
        frame.paste((255, 0, 0, 255), (left, 0, left + 5, 20))
    file = io.BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:])
    found = flat(file.getvalue(), "apng")[..., :3]
    assert found.shape == (2, 20, 20, 3)
    for left, frame in enumerate(found):
        assert (frame[:, left : left + 5] == (255, 0, 0)).all()
        assert (frame[:, left + 5 :] == COLOR).all()


def test_opaque_pictures_are_not_touched() -> None:
    for request in ({"format": "webp"}, {"format": "jpg"}):
        plain = imgsvc.process(coffee(), {"output": request})
        assert imgsvc.process(coffee(), {"output": {**request, "flatten": True}}).data == plain.data


def test_the_choice_of_the_format_needs_no_alpha_then() -> None:
    def formats(**output: Any) -> list[str]:
        plan = imgsvc.process(cut_out(), {"output": {"format": "auto", **output}}).plan
        return [settings.format for settings in plan.save]

    assert formats() == ["webp", "png"]
    assert formats(flatten=True) == ["webp", "jpg"]


def test_the_plan_says_why() -> None:
    plan = imgsvc.process(cut_out(), {"output": FLAT | {"format": "png"}}).plan
    assert "lay on FFD9A0 (as asked for)" in str(plan)
