"""The pipeline: all work on a picture, its order, and the functions that do it.

`PIPELINE` is the order of the contract. Each row names the functions of pixels that may do its work, and the
reason for its place. Steps that the compiler joins, reorders and folds have classes in
`imgsvc_core.plan.steps`. All other work is a `Work`, here and in `WORK_OF_FILTERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan.draft import (
    BACKDROP,
    Draft,
    canvas,
    crop,
    flip,
    lay_on_background,
    leave_alone,
    rescale,
    resize,
    rotate,
    scale,
    trim,
    turn,
    upright,
)
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.plan.redaction import Redaction, redaction_of
from imgsvc_core.plan.seen import NOTHING_SEEN, Seen, Sides
from imgsvc_core.plan.steps import (
    PLAIN,
    CropBox,
    Extend,
    Flatten,
    LayOnBackground,
    MakeBackdrop,
    Recolor,
    Resample,
    RotateFreely,
    SmartCrop,
    Step,
    ToSrgb,
    Traits,
    Turn,
)
from imgsvc_core.spec import (
    Adjust,
    Auto,
    Blur,
    Border,
    Filter,
    Halftone,
    Layer,
    Mask,
    Padding,
    Pixellate,
    Redact,
    Spec,
    Vignette,
    Watermark,
    internal,
    params,
    thumbor_filters,
    vips_filters,
)
from imgsvc_core.spec.color import WHITE

A = TypeVar("A")


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


@frozen(kw_only=True)
class Work(Generic[A]):
    """The work that a request asks for, and its function.

    Args:
        pixels: the function that does it, as ``module:function`` of `imgsvc_core.pixels`. It takes a frame,
            the part of the request, and the picture of a watermark if the work needs one.
        text: returns what the work does, for `explain`.
        why: the reason, if the request does not tell it.
        size: returns the new frame, in pixels of the one before it; without it, the frame stays.
        traits: the facts for the compiler.
        mark: returns the mark or the layer whose picture the work needs, or None if it needs no picture.
        draws: the function that makes what the work lays over each frame, of the part of the request and the
            picture. ``pixels`` then takes what it makes in place of the picture.
        joined: returns the part that asks for the same as two in a row.
    """

    pixels: str
    text: Callable[[A], str]
    why: str = ""
    size: Callable[[A, Draft], Box] | None = None
    traits: Traits | Callable[[A], Traits] = PLAIN
    mark: Callable[[A], thumbor_filters.Mark | Laid | None] | None = None
    draws: str = ""
    joined: Callable[[A, A], A] | None = None


@frozen
class Apply(Step):
    """Do the work of a row. ``frame`` is the new frame in pixels of the one before, if the frame changes."""

    asked: Any
    frame: Box | None = None

    @property
    def work(self) -> Work[Any]:
        """The row."""
        return WORKS[type(self.asked)]

    @property
    def text(self) -> str:
        return self.work.text(self.asked)

    def why(self, before: Size) -> str:
        return self.work.why

    def size_after(self, before: Size) -> Size:
        return before if self.frame is None else self.frame.size

    def box_after(self, box: Box, before: Size) -> Box:
        return box if self.frame is None else box.shifted(-self.frame.left, -self.frame.top)

    def joined(self, following: Step) -> Step | None:
        join = self.work.joined
        if join is None or not isinstance(following, Apply) or type(following.asked) is not type(self.asked):
            return None
        return Apply(join(self.asked, following.asked))

    @property
    def traits(self) -> Traits:
        traits = self.work.traits
        return traits if isinstance(traits, Traits) else traits(self.asked)


@frozen
class Stage(Generic[A]):
    """A row of the pipeline.

    Args:
        name: the phase, as in the contract.
        asked: the name of the part of the request that asks for the phase; empty for the whole request.
        size: works out the steps with all sizes. Without it the compiler does, which knows the format.
        made_by: functions of pixels by classes of steps, and works by classes of what is asked.
        reason: why the phase comes at this place.
    """

    name: str
    asked: str
    size: Callable[[Draft, A], None] | None
    made_by: Mapping[type, str | Work[Any]]
    reason: str


def build_steps(spec: Spec, info: ImageInfo, seen: Seen = NOTHING_SEEN) -> Draft:
    """Return the picture after the steps of a request, in the order of `PIPELINE`.

    Faces are followed up to the first smart crop, whose place depends on pixels.
    """
    size, gray = Size(info.width, info.height), info.colorspace == "gray"
    looked_at = spec.trim is not None
    draft = Draft(info, seen, size, gray, info.alpha, looked_at=looked_at, redacted=spec.redact)
    for stage in PIPELINE:
        asked = getattr(spec, stage.asked) if stage.asked else spec
        if stage.size is not None and asked:
            draft.phase = stage.name
            stage.size(draft, asked)
    draft.planned = [planned for planned in draft.planned if not planned.step.idle]
    return draft


def apply(draft: Draft, asked: Any) -> None:
    """Add the work of a row."""
    size = WORKS[type(asked)].size
    draft.add(Apply(asked, None if size is None else size(asked, draft)))


def _redact(draft: Draft, asked: tuple[Redact, ...]) -> None:
    apply(draft, redaction_of(asked, draft.info, draft.seen.faces_of_frames))


def _enhance(draft: Draft, auto: Auto) -> None:
    if auto.enhance:
        draft.recolor(enhance=True)


def _adjust(draft: Draft, adjust: Adjust) -> None:
    from imgsvc_core.plan.color.steps import adjustment  # most requests leave colors as they are

    for name, value in adjust.active():
        if name in _SPATIAL_ADJUSTMENTS:
            apply(draft, _SPATIAL_ADJUSTMENTS[name](value))
        elif operation := adjustment(name, value):
            draft.recolor(operation)


def _filter(draft: Draft, filters: tuple[Filter, ...]) -> None:
    from imgsvc_core.plan.color.steps import filtering

    for item in filters:
        if isinstance(item, thumbor_filters.Rescale):
            rescale(draft, item)
        elif isinstance(item, thumbor_filters.QuarterTurn):
            turn(draft, item.angle)
        elif isinstance(item, thumbor_filters.Inscription):
            apply(draft, Laid(item.layer, "filter", draft.size, visible=True, tall=item.tall))
        elif operation := filtering(item):
            draft.recolor(operation)
        else:
            apply(draft, item)


def _lay(draft: Draft, watermark: Watermark) -> None:
    apply(draft, thumbor_filters.Mark(watermark=watermark))


def _lay_all(draft: Draft, layers: tuple[Layer, ...]) -> None:
    for place, layer in enumerate(layers):
        apply(draft, Laid(layer, f"layers[{place}]", draft.size))


def _fade(draft: Draft, adjust: Adjust) -> None:
    if adjust.opacity != 1:
        apply(draft, Opacity(adjust.opacity))


def _around(size: Size, sides: Sides) -> Box:
    """Return a frame with room on the left, top, right and bottom."""
    left, top, right, bottom = sides
    return Box(-left, -top, size.width + left + right, size.height + top + bottom)


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


_NEIGHBORS = Traits(rereads=True, copies=1.5)
_STYLIZES = attrs.evolve(_NEIGHBORS, stylizes=True)
_COLORS = attrs.evolve(_NEIGHBORS, brings_color=True)


def _neighbors(pixels: str, traits: Traits | Callable[[Any], Traits] = _NEIGHBORS) -> Work[Any]:
    """Return the work of a filter that looks at neighbors or positions. The frame stays."""
    return Work(pixels=pixels, text=_values, why=_ALONE, traits=traits)


_ALONE = "in a pass of its own, as it looks beyond single pixels"

_ADJUSTMENTS: Mapping[type, Work[Any]] = {
    Sharpen: Work[Sharpen](
        pixels="spatial.sharpen:adjust_sharpen",
        text=lambda asked: f"sharpen {asked.value}",
        why=_ALONE,
        traits=_NEIGHBORS,
    ),
    Unsharp: Work[Unsharp](
        pixels="spatial.sharpen:adjust_unsharp",
        text=lambda asked: f"unsharp {asked.value}",
        why=_ALONE,
        traits=_NEIGHBORS,
    ),
}
_SPATIAL_ADJUSTMENTS: Mapping[str, type[Sharpen | Unsharp]] = {"sharpen": Sharpen, "unsharp": Unsharp}

_MARK = Work[thumbor_filters.Mark](
    pixels="overlay:lay_mark",
    text=lambda mark: f"lay watermark '{mark.watermark.id}' over the picture",
    # Its picture may have color, which is known only when it is opened.
    # Each mark would compute the pixels below it again, so the frame settles in memory between two marks.
    traits=lambda mark: Traits(
        rereads=True, settles=True, brings_color=True, brings_alpha=mark.blend != "over"
    ),
    mark=lambda mark: mark,
)

WORK_OF_FILTERS: Mapping[type[Filter], Work[Any]] = {
    Blur: Work[Blur](
        pixels="spatial.blur:blur",
        text=_blur_values,
        why=_ALONE,
        traits=lambda blur: attrs.evolve(_NEIGHBORS, copies=4) if blur.mode == "zoom" else _NEIGHBORS,
    ),
    Pixellate: _neighbors("spatial.pixellate:filter_pixellate", _STYLIZES),
    Vignette: _neighbors("spatial.vignette:filter_vignette"),
    Halftone: _neighbors("spatial.halftone:filter_halftone", _STYLIZES),
    internal.AreaBlur: _neighbors("spatial.gaussian:area_blur"),
    internal.ColorMatrix: _neighbors("spatial.coloring:color_matrix", _COLORS),
    internal.ColorOverlay: _neighbors(
        "spatial.coloring:color_overlay", lambda overlay: _NEIGHBORS.on([overlay.color])
    ),
    internal.GaussianBlur: _neighbors("spatial.gaussian:filter_gaussian"),
    internal.LightnessSharpen: _neighbors("spatial.sharpen:lightness_sharpen"),
    internal.Mosaic: _neighbors("spatial.pixellate:filter_mosaic", _STYLIZES),
    thumbor_filters.RootSaturation: _neighbors("thumbor_filters:root_saturation"),
    thumbor_filters.Equalize: _neighbors("thumbor_filters:equalize"),
    thumbor_filters.Noise: _neighbors("thumbor_filters:noise"),
    thumbor_filters.Convolution: _neighbors("thumbor_filters:convolution"),
    thumbor_filters.WaveletSharpen: _neighbors(
        "thumbor_filters:wavelet_sharpen", attrs.evolve(_NEIGHBORS, copies=10)
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
    thumbor_filters.NinePatch: Work[thumbor_filters.NinePatch](
        pixels="nine_patch:lay_frame",
        text=lambda patch: f"lay frame '{patch.id}' over the picture",
        size=lambda patch, draft: _around(draft.size, draft.seen.frames.get(patch.id, (0, 0, 0, 0))),
        # copies of its colors and alpha, as floats
        traits=Traits(rereads=True, copies=4, brings_color=True).on([WHITE]),
        mark=lambda patch: thumbor_filters.Mark(watermark=Watermark(id=patch.id)),
    ),
    thumbor_filters.Mark: _MARK,
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
        "vips_filters:without_white", attrs.evolve(_NEIGHBORS, brings_alpha=True)
    ),
}
"""The work of each filter that is neither a formula of color nor a move of the picture."""

_REDACTION = Work[Redaction](
    pixels="redaction:redact",
    text=lambda redaction: redaction.text,
    why="on all pixels of the source, so that none of them is left",
    traits=lambda redaction: _NEIGHBORS.on(item.color for item in redaction.covered if item.mode == "color"),
)
_MASK = Work[Mask](
    pixels="shapes:cut_to_mask",
    text=lambda mask: f"{mask.shape} mask" + ("" if mask.radius is None else f" of radius {mask.radius}"),
    traits=lambda mask: PLAIN.on([mask.background]),
)
_PADDING = Work[Padding](
    pixels="shapes:pad",
    text=lambda padding: "add {} at the top, {} right, {} bottom, {} left".format(*padding.sides),
    size=lambda padding, draft: _around(draft.size, (padding.sides[3], *padding.sides[:3])),
    traits=lambda padding: PLAIN.on([padding.background]),
)
_BORDER = Work[Border](
    pixels="shapes:draw_border",
    text=lambda border: f"border of {border.size} in {border.color}, radius {border.radius}",
    size=lambda border, draft: _around(draft.size, (border.size,) * 4),
    traits=lambda border: PLAIN.on([border.color, *([border.background] if border.radius else [])]),
)
_LAYER = Work[Laid](
    pixels="layers.laying:lay_layer",
    draws="layers.laying:draw_layer",
    text=lambda laid: laid.text,
    traits=lambda laid: Traits(
        rereads=True,
        settles=True,
        in_array=True,
        brings_color=not laid.layer.gray,
        drawn=laid.memory,
        buffers=laid.buffers,
    ),
    mark=lambda laid: None if laid.layer.picture is None else laid,
)
_OPACITY = Work[Opacity](
    pixels="pointwise:multiply_alpha",
    text=lambda opacity: f"opacity {opacity.value:g}",
    traits=Traits(brings_alpha=True),
)

# fmt: off
PIPELINE: tuple[Stage[Any], ...] = (
    # name, part of the request, size, functions of pixels, and the reason for the place
    Stage("orient", "", upright, {Turn: "steps:turn", ToSrgb: "steps:to_srgb"},
          "Everything that a request says is about the upright picture in sRGB."),
    Stage("redact", "redact", _redact, {Redaction: _REDACTION},
          "No other step may see or show what is hidden."),
    Stage("trim", "trim", trim, {CropBox: "steps:crop"},
          "The border is no part of the picture, so all sizes count without it."),
    Stage("flip", "flip", flip, {Turn: "steps:turn"},
          "Crops count from the edges of the mirrored picture."),
    Stage("rotate", "rotate", rotate, {Turn: "steps:turn", RotateFreely: "steps:rotate"},
          "Crops count from the edges of the turned picture."),
    Stage("crop", "crop", crop, {CropBox: "steps:crop", SmartCrop: "steps:crop_smartly"},
          "Its numbers are pixels of the source, so nothing is scaled before."),
    Stage("resize", "resize", resize,
          {Resample: "steps:resample", CropBox: "steps:crop", SmartCrop: "steps:crop_smartly",
           Extend: "steps:extend"},
          "All later work is on as few pixels as the result needs."),
    Stage("scale", "scale", scale, {Resample: "steps:resample"},
          "It multiplies the size that resize gave."),
    Stage("auto", "auto", _enhance, {Recolor: "steps:recolor"},
          "It measures the colors of the source, before they are changed on purpose."),
    Stage("adjust", "adjust", _adjust, {Recolor: "steps:recolor", **_ADJUSTMENTS},
          "Colors are corrected before filters make something else of them."),
    Stage("filter", "filter", _filter,
          {Recolor: "steps:recolor", Turn: "steps:turn", Resample: "steps:resample", **WORK_OF_FILTERS},
          "Filters change the corrected picture, and nothing that is put around it."),
    Stage(BACKDROP, "background", leave_alone, {MakeBackdrop: "background:make_backdrop"},
          "A background is made of the filtered picture alone, whatever is cut off or put around it."),
    Stage("mask", "mask", apply, {Mask: _MASK},
          "The shape is cut from the filtered picture, and not from what is put around it."),
    Stage("canvas", "canvas", canvas, {Extend: "steps:extend"},
          "The picture has its size or ratio before more is put around it."),
    Stage("padding", "padding", apply, {Padding: _PADDING},
          "The space lies between the picture and its border."),
    Stage("background", "background", lay_on_background,
          {LayOnBackground: "background:lay_on_background"},
          "It lies under the picture and the space around it, and a border goes around both."),
    Stage("border", "border", apply, {Border: _BORDER},
          "The line goes around everything."),
    Stage("watermark", "watermark", _lay, {thumbor_filters.Mark: _MARK},
          "It may lie over the border too, and no filter changes it."),
    Stage("layers", "layers", _lay_all, {Laid: _LAYER},
          "They lie over everything, each over those before it."),
    Stage("opacity", "adjust", _fade, {Opacity: _OPACITY},
          "All that was laid over the picture fades with it."),
    Stage("output", "output", None, {Flatten: "steps:flatten"},
          "Only the format tells if transparency must be laid on a color."),
)
# fmt: on
"""All work on a picture, in this order."""

PHASES: tuple[str, ...] = tuple(stage.name for stage in PIPELINE)
"""The order of the work on a picture. Orientation and conversion to sRGB come first."""

_MADE_BY = {kind: made_by for stage in PIPELINE for kind, made_by in stage.made_by.items()}

FUNCTIONS: Mapping[type, str] = {kind: name for kind, name in _MADE_BY.items() if isinstance(name, str)}
"""The functions of pixels by the classes of steps."""

WORKS: Mapping[type, Work[Any]] = {kind: work for kind, work in _MADE_BY.items() if isinstance(work, Work)}
"""All work without a class of steps, by the class of the operation."""
