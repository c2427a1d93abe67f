"""The pipeline: all work on a picture, and its order.

`PIPELINE` is the order of the contract. Each row has the reason for its place, and names the functions of
pixels for steps that the compiler joins, reorders and folds, which have classes in `imgsvc_core.plan.steps`.
All other work is a `Work` in `imgsvc_core.plan.works` or, for filters, `imgsvc_core.plan.filter_works`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

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
    upright,
)
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.seen import NOTHING_SEEN, Seen
from imgsvc_core.plan.steps import (
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
from imgsvc_core.spec import Adjust, Auto, Filter, Redact, Rotate, Spec, Watermark

if TYPE_CHECKING:
    from imgsvc_core.plan.works import Work
    from imgsvc_core.spec import Layer


@frozen
class Apply(Step):
    """Do the work of a row. ``frame`` is the new frame in pixels of the one before, if the frame changes."""

    asked: Any
    frame: Box | None = None

    @property
    def work(self) -> Work[Any]:
        """The row."""
        from imgsvc_core.plan.works import work_of  # most requests ask for none of it

        return work_of(self.asked)

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
class Stage:
    """A row of the pipeline.

    Args:
        name: the phase, as in the contract.
        asked: the name of the part of the request that asks for the phase; empty for the whole request.
        size: works out the steps with all sizes. Without it the compiler does, which knows the format.
        made_by: functions of pixels by classes of steps.
        reason: why the phase comes at this place.
    """

    name: str
    asked: str
    size: Callable[[Draft, Any], None] | None
    made_by: Mapping[type[Step], str]
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
    size = Apply(asked).work.size
    draft.add(Apply(asked, None if size is None else size(asked, draft.size)))


def _redact(draft: Draft, asked: tuple[Redact, ...]) -> None:
    from imgsvc_core.plan.redaction import redaction_of

    apply(draft, redaction_of(asked, draft.info, draft.seen.faces_of_frames))


def _enhance(draft: Draft, auto: Auto) -> None:
    draft.recolor(enhance=True)


def _adjust(draft: Draft, adjust: Adjust) -> None:
    from imgsvc_core.plan.color.steps import adjustment  # most requests leave colors as they are
    from imgsvc_core.plan.filter_works import SPATIAL_ADJUSTMENTS

    for name, value in adjust.active():
        if name in SPATIAL_ADJUSTMENTS:
            apply(draft, SPATIAL_ADJUSTMENTS[name](value))
        elif operation := adjustment(name, value):
            draft.recolor(operation)


def _filter(draft: Draft, filters: tuple[Filter, ...]) -> None:
    from imgsvc_core.plan.color.steps import filtering
    from imgsvc_core.plan.layers import Laid
    from imgsvc_core.spec import thumbor_filters

    for item in filters:
        if isinstance(item, thumbor_filters.Rescale):
            rescale(draft, item)
        elif isinstance(item, thumbor_filters.QuarterTurn):
            rotate(draft, Rotate(angle=item.angle))
        elif isinstance(item, thumbor_filters.Inscription):
            apply(draft, Laid(item.layer, "filter", draft.size, visible=True, tall=item.tall))
        elif operation := filtering(item):
            draft.recolor(operation)
        else:
            apply(draft, item)


def _lay(draft: Draft, watermark: Watermark) -> None:
    from imgsvc_core.spec.thumbor_filters import Mark

    apply(draft, Mark(watermark=watermark))


def _lay_all(draft: Draft, layers: tuple[Layer, ...]) -> None:
    from imgsvc_core.plan.layers import Laid

    for place, layer in enumerate(layers):
        apply(draft, Laid(layer, f"layers[{place}]", draft.size))


def _fade(draft: Draft, adjust: Adjust) -> None:
    if adjust.opacity != 1:
        from imgsvc_core.plan.filter_works import Opacity

        apply(draft, Opacity(adjust.opacity))


# fmt: off
PIPELINE: tuple[Stage, ...] = (
    # name, part of the request, size, functions of pixels, and the reason for the place
    Stage("orient", "", upright, {Turn: "steps:turn", ToSrgb: "steps:to_srgb"},
          "Everything that a request says is about the upright picture in sRGB."),
    Stage("redact", "redact", _redact, {},
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
    Stage("adjust", "adjust", _adjust, {Recolor: "steps:recolor"},
          "Colors are corrected before filters make something else of them."),
    Stage("filter", "filter", _filter,
          {Recolor: "steps:recolor", Turn: "steps:turn", Resample: "steps:resample"},
          "Filters change the corrected picture, and nothing that is put around it."),
    Stage(BACKDROP, "background", leave_alone, {MakeBackdrop: "background:make_backdrop"},
          "A background is made of the filtered picture alone, whatever is cut off or put around it."),
    Stage("mask", "mask", apply, {},
          "The shape is cut from the filtered picture, and not from what is put around it."),
    Stage("canvas", "canvas", canvas, {Extend: "steps:extend"},
          "The picture has its size or ratio before more is put around it."),
    Stage("padding", "padding", apply, {},
          "The space lies between the picture and its border."),
    Stage("background", "background", lay_on_background,
          {LayOnBackground: "background:lay_on_background"},
          "It lies under the picture and the space around it, and a border goes around both."),
    Stage("border", "border", apply, {},
          "The line goes around everything."),
    Stage("watermark", "watermark", _lay, {},
          "It may lie over the border too, and no filter changes it."),
    Stage("layers", "layers", _lay_all, {},
          "They lie over everything, each over those before it."),
    Stage("opacity", "adjust", _fade, {},
          "All that was laid over the picture fades with it."),
    Stage("output", "output", None, {Flatten: "steps:flatten"},
          "Only the format tells if transparency must be laid on a color."),
)
# fmt: on
"""All work on a picture, in this order."""

PHASES: tuple[str, ...] = tuple(stage.name for stage in PIPELINE)
"""The order of the work on a picture. Orientation and conversion to sRGB come first."""

FUNCTIONS: Mapping[type[Step], str] = {
    kind: name for stage in PIPELINE for kind, name in stage.made_by.items()
}
"""The functions of pixels by the classes of steps."""
