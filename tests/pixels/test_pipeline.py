"""What rows of the pipeline say of sizes, color and alpha is what their functions do to pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.vips import from_array
from imgsvc_core.pixels.channels import split_alpha
from imgsvc_core.pixels.render import function_of_pixels
from imgsvc_core.plan.filter_works import FILTER_WORKS, Opacity, Sharpen, Unsharp
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.plan.pipeline import apply, build_steps
from imgsvc_core.plan.redaction import Covered, Redaction
from imgsvc_core.plan.works import WORKS, work_of
from imgsvc_core.spec import Blur, Border, Color, Layer, Mask, Operation, Padding, Spec, Watermark
from imgsvc_core.spec import internal as own
from imgsvc_core.spec import thumbor_filters as fx
from imgsvc_core.spec import vips_filters as vips
from imgsvc_core.spec.declare import all_params
from imgsvc_core.spec.kinds import Choice, HexColor, Integer, Number, Text

RNG = np.random.default_rng(7)
GRAY = RNG.integers(0, 256, (40, 60), np.uint8)
TONES = bytes(range(256))
WEIGHTS = (0.5, 0.25, 0.25, 0.0)
EXAMPLES: list[Any] = [
    Sharpen(40), Unsharp(40), Opacity(0.5),
    Mask(shape="ellipse"), Mask(shape="ellipse", background="888"), Mask(shape="ellipse", background="F00"),
    Padding(top=1, right=2, bottom=3, left=4), Padding(size=3, background="00F"),
    Border(size=2, color="000"), Border(size=2, color="F00", radius=5, background="FFF"),
    fx.Mark(watermark=Watermark(id="a")), fx.Mark(watermark=Watermark(id="a"), blend="dest-out"),
    *(
        Laid(Layer(**layer), "layers[0]", Size(60, 40))
        for layer in (
            {"picture": {"id": "a"}, "rotation": 30}, {"picture": {"id": "a"}, "blend": "multiply"},
            {"shape": {"kind": "ellipse", "color": "888"}, "width": "50%"},
            {"shape": {"kind": "line", "color": "F00"}, "blend": "screen", "rotation": 90},
            {"gradient": {"from": "000", "to": "80FFFFFF"}}, {"gradient": {"from": "F00", "to": "0FF"}},
        )
    ),
    *(
        Redaction((Covered(Box(3, 4, 20, 10), mode, Color.parse(color)),))
        for mode, color in (("color", "808080"), ("color", "F00"), ("pixels", "F00"), ("blur", "000"))
    ),
    fx.WithoutAlpha(), fx.RoundCorners(across=5, down=4),
    fx.Ground(width=80, height=30, left=5, top=-3, kind="color", color="0F0"),
    fx.Ground(width=80, height=30, left=5, top=3, kind="mean"),
    fx.Ground(width=80, height=90, left=5, top=3, kind="blur", sigma=2),
    fx.Tones(red=TONES, green=TONES, blue=TONES), fx.Tones(red=TONES, green=TONES, blue=TONES[::-1]),
    fx.RootSaturation(factor=1.5), fx.Equalize(), fx.Noise(amount=20), fx.WaveletSharpen(amount=1, radius=1),
    fx.Convolution(weights=(1.0,) * 9, columns=3),
    Blur(mode="gaussian", value=30), Blur(mode="motion", value=30), Blur(mode="zoom", value=30),
    own.ColorMatrix(red=WEIGHTS, green=WEIGHTS, blue=WEIGHTS), own.GaussianBlur(sigma=2),
    own.ColorOverlay(color="F00", opacity=0.5), own.ColorOverlay(color="808080", opacity=0.5),
    own.LightnessSharpen(sigma=1), own.Mosaic(cell=7),
    vips.Median(size=3), vips.Threshold(level=100), vips.Morphology(mode="erode", width=1), vips.Negate(),
    vips.Modulate(brightness=1.2), vips.Stretch(lower=1, upper=99), vips.WithoutWhite(),
    vips.LocalEqualize(width=9, height=9, slope=3), vips.ChromaTint(color="F00"),
    vips.ChromaTint(color="808080"),
]  # fmt: skip
COLORED = RNG.integers(0, 256, (12, 12, 4), np.uint8)


VALUES: dict[type, Any] = {Integer: 3, Number: 3, Text: "a", HexColor: "F00"}


def usual(operation: type[Operation]) -> Operation:
    """Return what a row without an example does with usual values."""
    required = {name: param.kind for name, param in all_params(operation).items() if param.required}
    return operation(
        **{
            name: kind.options[0] if isinstance(kind, Choice) else VALUES[type(kind)]
            for name, kind in required.items()
        }
    )


EXAMPLES += [
    usual(kind) for kind in (*WORKS, *FILTER_WORKS) if kind not in {type(asked) for asked in EXAMPLES}
]


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("asked", EXAMPLES, ids=lambda asked: type(asked).__name__)
def test_rows_tell_the_size_and_the_channels_that_their_functions_make(asked: Any, alpha: bool) -> None:
    image = from_array(np.dstack([GRAY, GRAY // 2]) if alpha else GRAY)
    info = ImageInfo(format="png", width=60, height=40, colorspace="gray", bytes=0, alpha=alpha)
    draft = build_steps(Spec(), info)
    apply(draft, asked)
    work, [planned] = work_of(asked), draft.planned
    pictures: list[Any] = []
    if work.mark is not None:
        pictures = [work.mark(asked) and from_array(COLORED)]
    if work.draws:
        pictures = [function_of_pixels(work.draws)(asked, *pictures)]
    made = function_of_pixels(work.pixels)(image, asked, *pictures)
    assert (made.width, made.height) == planned.after == draft.size
    if not planned.traits.brings_color:
        assert split_alpha(made)[0].bands == 1
    if not (alpha or planned.traits.brings_alpha):
        assert not made.hasalpha() or made[made.bands - 1].min() == 255
    if planned.traits.removes_alpha:
        assert not made.hasalpha()
