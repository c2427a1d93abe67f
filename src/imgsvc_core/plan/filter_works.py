"""The work of redaction, of filters, of adjustments that look beyond single pixels, and of watermarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.plan.geometry import Box
from imgsvc_core.plan.redaction import Redaction
from imgsvc_core.plan.steps import PLAIN, Traits
from imgsvc_core.plan.works import NEIGHBORS, Work
from imgsvc_core.spec import (
    Blur,
    Filter,
    Halftone,
    Pixellate,
    Vignette,
    internal,
    params,
    thumbor_filters,
    vips_filters,
)


@frozen
class Sharpen:
    """Strengthen or soften fine detail."""

    value: int


@frozen
class Unsharp:
    """Strengthen local contrast."""

    value: int


@frozen
class Opacity:
    """Multiply alpha."""

    value: float


def _values(filter: Filter) -> str:
    """Return the name of a filter and its values."""
    return ", ".join([filter.key, *(f"{name} {getattr(filter, name)}" for name in params(type(filter)))])


def _blur_values(blur: Blur) -> str:
    return _values(blur) if blur.mode == "motion" else f"blur, mode {blur.mode}, value {blur.value}"


def _ground_kind(ground: thumbor_filters.Ground) -> str:
    return str(ground.color or "nothing") if ground.kind == "color" else ground.kind


def _joined_tones(first: thumbor_filters.Tones, second: thumbor_filters.Tones) -> thumbor_filters.Tones:
    return thumbor_filters.Tones(
        red=first.red.translate(second.red),
        green=first.green.translate(second.green),
        blue=first.blue.translate(second.blue),
    )


_STYLIZES = attrs.evolve(NEIGHBORS, stylizes=True)
_COLORS = attrs.evolve(NEIGHBORS, brings_color=True)


def _neighbors(
    pixels: str, traits: Traits | Callable[[Any], Traits] = NEIGHBORS, *, text: Callable[[Any], str] = _values
) -> Work[Any]:
    """Return the work of a filter that looks at neighbors or positions. The frame stays."""
    why = "in a pass of its own, as it looks beyond single pixels"
    return Work(pixels=pixels, text=text, why=why, traits=traits)


SPATIAL_ADJUSTMENTS: Mapping[str, type[Sharpen | Unsharp]] = {"sharpen": Sharpen, "unsharp": Unsharp}
"""The adjustments that look beyond single pixels, by the names of their parameters."""

WORK_OF_FILTERS: Mapping[type[Filter], Work[Any]] = {
    Blur: _neighbors(
        "spatial.blur:blur",
        lambda blur: attrs.evolve(NEIGHBORS, copies=4) if blur.mode == "zoom" else NEIGHBORS,
        text=_blur_values,
    ),
    Pixellate: _neighbors("spatial.pixellate:filter_pixellate", _STYLIZES),
    Vignette: _neighbors("spatial.vignette:filter_vignette"),
    Halftone: _neighbors("spatial.halftone:filter_halftone", _STYLIZES),
    internal.ColorMatrix: _neighbors("spatial.coloring:color_matrix", _COLORS),
    internal.ColorOverlay: _neighbors(
        "spatial.coloring:color_overlay", lambda overlay: NEIGHBORS.on([overlay.color])
    ),
    internal.GaussianBlur: _neighbors("spatial.gaussian:filter_gaussian"),
    internal.LightnessSharpen: _neighbors("spatial.sharpen:lightness_sharpen"),
    internal.Mosaic: _neighbors("spatial.pixellate:filter_mosaic", _STYLIZES),
    thumbor_filters.RootSaturation: _neighbors("thumbor_filters:root_saturation"),
    thumbor_filters.Equalize: _neighbors("thumbor_filters:equalize"),
    thumbor_filters.Noise: _neighbors("thumbor_filters:noise"),
    thumbor_filters.Convolution: _neighbors("thumbor_filters:convolution"),
    thumbor_filters.WaveletSharpen: _neighbors(
        "thumbor_filters:wavelet_sharpen", attrs.evolve(NEIGHBORS, copies=10)
    ),
    thumbor_filters.Tones: Work[thumbor_filters.Tones](
        pixels="thumbor_filters:map_tones",
        text=lambda tones: "tone table",
        traits=lambda tones: Traits(brings_color=len({tones.red, tones.green, tones.blue}) > 1),
        joined=_joined_tones,
    ),
    thumbor_filters.Ground: Work[thumbor_filters.Ground](
        pixels="ground:lay_on_ground",
        text=lambda ground: f"lay on {_ground_kind(ground)} at {ground.left}, {ground.top}",
        size=lambda ground, _: Box(-ground.left, -ground.top, ground.width, ground.height),
        traits=lambda ground: (
            PLAIN.on([ground.color])
            if ground.kind == "color"
            else Traits(rereads=True, copies=3 if ground.kind == "blur" else 0)
        ),
    ),
    thumbor_filters.RoundCorners: Work[thumbor_filters.RoundCorners](
        pixels="shapes:round_corners",
        text=lambda corners: f"round corners of radius {corners.across}, {corners.down}",
        traits=lambda corners: PLAIN.on([corners.background]),
    ),
    thumbor_filters.Mark: Work[thumbor_filters.Mark](
        pixels="overlay:lay_mark",
        text=lambda mark: f"lay watermark '{mark.watermark.id}' over the picture",
        # Its picture may have color, which is known only when it is opened.
        # Each mark would compute the pixels below it again, so the frame settles in memory between two marks.
        traits=lambda mark: Traits(
            rereads=True, settles=True, brings_color=True, brings_alpha=mark.blend != "over"
        ),
        mark=lambda mark: mark,
    ),
    thumbor_filters.WithoutAlpha: Work(
        pixels="channels:drop_alpha",
        text=lambda _: "leave transparency out",
        traits=Traits(removes_alpha=True),
    ),
    vips_filters.Median: _neighbors("vips_filters:median"),
    vips_filters.Threshold: _neighbors("vips_filters:threshold", _STYLIZES),
    vips_filters.Morphology: _neighbors("vips_filters:morphology"),
    vips_filters.Modulate: _neighbors("vips_filters:modulate"),
    vips_filters.Stretch: _neighbors("vips_filters:stretch"),
    vips_filters.LocalEqualize: _neighbors("vips_filters:local_equalize"),
    vips_filters.ChromaTint: _neighbors("vips_filters:chroma_tint", _COLORS),
    vips_filters.Negate: _neighbors("vips_filters:negate"),
    vips_filters.WithoutWhite: _neighbors(
        "vips_filters:without_white", attrs.evolve(NEIGHBORS, brings_alpha=True)
    ),
}
"""The work of each filter that is neither a formula of color nor a move of the picture."""

FILTER_WORKS: Mapping[type, Work[Any]] = {
    **WORK_OF_FILTERS,
    Redaction: Work[Redaction](
        pixels="redaction:redact",
        text=lambda redaction: redaction.text,
        why="on all pixels of the source, so that none of them is left",
        traits=lambda redaction: NEIGHBORS.on(
            item.color for item in redaction.covered if item.mode == "color"
        ),
    ),
    Sharpen: _neighbors("spatial.sharpen:adjust_sharpen", text=lambda asked: f"sharpen {asked.value}"),
    Unsharp: _neighbors("spatial.sharpen:adjust_unsharp", text=lambda asked: f"unsharp {asked.value}"),
    Opacity: Work[Opacity](
        pixels="pointwise:multiply_alpha",
        text=lambda opacity: f"opacity {opacity.value:g}",
        traits=Traits(brings_alpha=True),
    ),
}
"""The work of filters, redaction, adjustments and watermarks, by the class of what is asked."""
