"""The plan of the work on a picture: all steps in order, with all sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.settings import LoadSettings, SaveSettings
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan import decoding, encoding
from imgsvc_core.plan.faces import Face, tracked
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps import CropBox, Flatten, PlannedStep, Resample, SmartCrop
from imgsvc_core.spec.color import WHITE, Color
from imgsvc_core.spec.facts import FactName

K = TypeVar("K")


@frozen(kw_only=True)
class Plan:
    """The compiled request. ``str(plan)`` explains it.

    With several ``save`` settings the best file is taken; ``why_saved`` gives the reason for the settings.
    Graphics are written with ``save_exactly``, if it is set. ``frame`` is the number of the frame that is
    kept, if it is not the first. ``memory`` is the most memory in bytes that the plan takes beside the
    program itself. ``kept`` is the part of it that holds the pixels of the result until they are encoded.
    ``faces`` lie in the result, or in the picture before the first smart crop, if there is one. They are None
    if no step looked for them. ``facts`` names the facts of pixels that are measured before encoding, on
    ``background``. ``original`` tells if the coded pixels of the source stay, also in another format: always,
    or if encoding them again saves nothing.
    """

    info: ImageInfo
    load: LoadSettings
    steps: tuple[PlannedStep, ...]
    save: tuple[SaveSettings, ...]
    save_exactly: tuple[SaveSettings, ...] = ()
    why_saved: str
    frames: int
    frame: int = 0
    faces: tuple[Face, ...] | None = None
    facts: tuple[FactName, ...] = ()
    background: Color = WHITE
    original: Literal["always", "if smaller"] | None = None
    memory: int
    kept: int = 0

    @property
    def size(self) -> Size:
        """Width and height of a frame of the result."""
        return self.steps[-1].after if self.steps else Size(self.info.width, self.info.height)

    @property
    def is_encoded_once(self) -> bool:
        """True if an image may stream through its encoder."""
        return len(self.save) == 1 and not self.save_exactly and self.save[0].look is None

    @property
    def is_quick(self) -> bool:
        """True if pixels are only decoded to an array, cropped and reduced."""
        steps = all(isinstance(item.step, CropBox | Resample) for item in self.steps)
        return self.load.array and steps and self.original is None

    @property
    def transcodes(self) -> bool:
        """True if the file of the source is rewrapped as another format."""
        return self.original == "always" and self.save[0].format != self.info.format

    def faces_in_result(self, regions: Iterable[tuple[int, int]]) -> tuple[Face, ...] | None:
        """Return the faces in the result. ``regions`` are left and top of the parts that smart crops kept."""
        if self.faces is None:
            return None
        faces, places, followed = self.faces, iter(regions), True
        for planned in self.steps:
            step = planned.step
            if isinstance(step, SmartCrop):
                step, followed = step.at(*next(places)), False
            if not followed:
                faces = tracked(faces, step, planned.before, planned.after)
        return faces

    def losses(self, format: str, *, more_pages: bool = False) -> list[str]:
        """Return a sentence for each loss: frames, pages and transparency.

        ``more_pages`` tells that the result has those of the source.
        """
        row = FORMATS[format]
        sentences = []
        if self.frames < self.info.frames:
            kept, are = ("the first", "is") if self.frames == 1 else (f"the first {self.frames}", "are")
            kept = f"number {self.frame + 1}" if self.frame else kept
            sentences.append(f"Only {kept} of {self.info.frames} frames {are} kept.")
        if self.info.more_pages and not (more_pages or self.transcodes):
            sentences.append("Only the first picture of the file is kept.")
        if self.steps and isinstance(flatten := self.steps[-1].step, Flatten) and not row.alpha:
            laid = f"what was transparent lies on {flatten.background}"
            sentences.append(f"{row.title} has no transparency: {laid}.")
        return sentences

    def lines(self) -> list[dict[str, Any]]:
        """Return for each stage its phase, its work, the reason, and width and height of a frame after it."""
        stored = Size(self.info.width, self.info.height)
        if self.original == "always" and not self.facts:
            title = FORMATS[self.info.format].title
            if self.transcodes:
                title += f" as {FORMATS[self.save[0].format].title}"
            text = f"{title}, its coded pixels as they are, metadata: {self.save[0].metadata}"
            return [_line("output", text, "as asked for", stored)]
        encoded = encoding.text(self.save, self.save_exactly)
        if self.original is not None:
            encoded += ", or the pixels of the original if that saves nothing"
        why_loaded = decoding.why(self.load, self.steps, self.frames)
        return [
            _line("load", decoding.text(self.load, self.info, self.steps, self.frames), why_loaded, stored),
            *(
                _line(item.phase, item.step.text, item.step.why(item.before), item.after)
                for item in self.steps
            ),
            *([_line("output", f"measure {', '.join(self.facts)}", "", self.size)] if self.facts else ()),
            _line("output", encoded, self.why_saved, self.size),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "input": {"format": self.info.format, "width": self.info.width, "height": self.info.height},
            "output": {
                "formats": list(
                    dict.fromkeys(settings.format for settings in (*self.save, *self.save_exactly))
                ),
                "width": self.size.width,
                "height": self.size.height,
                "frames": self.frames,
            },
            "load": attrs.asdict(self.load),
            "memory": self.memory,
            "steps": self.lines(),
        }

    def __str__(self) -> str:
        lines = self.lines()
        sizes = [f"{line['width']} x {line['height']}" for line in lines]
        phase_width = max(len(line["phase"]) for line in lines)
        size_width = max(map(len, sizes))
        return "\n".join(
            f"{line['phase']:<{phase_width}}  {size:>{size_width}}  {line['text']}"
            + (f" ({line['why']})" if line["why"] else "")
            for line, size in zip(lines, sizes, strict=True)
        )


def decodings(plans: Mapping[K, Plan]) -> Iterator[tuple[LoadSettings, dict[K, Plan]]]:
    """Return settings to decode the source, each with the plans that use it.

    Plans share a decoding at the largest scale that any of them needs. An enlarged drawing suits only one
    plan.
    """
    groups: dict[tuple[bool, float, bool], dict[K, Plan]] = {}
    for key, plan in plans.items():
        load = plan.load
        groups.setdefault((load.all_frames, max(1.0, load.scale), load.array), {})[key] = plan
    for group in groups.values():
        settings = next(iter(group.values())).load
        if len(group) > 1:
            scale = max(plan.load.scale for plan in group.values())
            metadata = any(plan.load.metadata for plan in group.values())
            settings = attrs.evolve(settings, scale=scale, sequential=True, metadata=metadata)
            group = {key: attrs.evolve(plan, load=settings) for key, plan in group.items()}
        yield settings, group


def _line(phase: str, text: str, why: str, size: Size) -> dict[str, Any]:
    return {"phase": phase, "text": text, "why": why, "width": size.width, "height": size.height}
