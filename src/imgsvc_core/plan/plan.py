"""What will be done to a picture, in order, with all sizes."""

from __future__ import annotations

from typing import Any

import attrs

from imgsvc_core.codecs.settings import LoadSettings, SaveSettings
from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.faces import Face
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps import Step


@attrs.frozen
class PlannedStep:
    """A step and the size of a frame after it."""

    step: Step
    size: Size


@attrs.frozen(kw_only=True)
class Plan:
    """The compiled request. ``str(plan)`` explains it; with several ``save`` the smallest file is taken."""

    info: ImageInfo
    load: LoadSettings
    steps: tuple[PlannedStep, ...]
    save: tuple[SaveSettings, ...]
    frames: int
    faces: tuple[Face, ...] = ()

    @property
    def size(self) -> Size:
        """Width and height of a frame of the result."""
        return self.steps[-1].size if self.steps else Size(self.info.width, self.info.height)

    def lines(self) -> list[dict[str, Any]]:
        """Each stage as phase, what is done, and width and height of a frame after it."""
        width, height = self.info.width, self.info.height
        load = {"phase": "load", "text": self._load_text(), "width": width, "height": height}
        steps = [
            {
                "phase": item.step.phase,
                "text": item.step.text,
                "width": item.size.width,
                "height": item.size.height,
            }
            for item in self.steps
        ]
        save = {
            "phase": "output",
            "text": self._save_text(),
            "width": self.size.width,
            "height": self.size.height,
        }
        return [load, *steps, save]

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "input": {"format": self.info.format, "width": self.info.width, "height": self.info.height},
            "output": {
                "formats": [settings.format for settings in self.save],
                "width": self.size.width,
                "height": self.size.height,
                "frames": self.frames,
            },
            "load": attrs.asdict(self.load),
            "steps": self.lines(),
        }

    def __str__(self) -> str:
        lines = self.lines()
        sizes = [f"{line['width']} x {line['height']}" for line in lines]
        phase_width = max(len(line["phase"]) for line in lines)
        size_width = max(map(len, sizes))
        return "\n".join(
            f"{line['phase']:<{phase_width}}  {size:>{size_width}}  {line['text']}"
            for line, size in zip(lines, sizes, strict=True)
        )

    def _load_text(self) -> str:
        title = FORMATS[self.info.format].title if self.info.format in FORMATS else self.info.format
        frames = (
            f", all {self.frames} frames"
            if self.frames > 1
            else ", first frame"
            if self.info.animated
            else ""
        )
        if self.load.scale == 1:
            scale = ""
        elif self.load.scale < 1:
            scale = f", decode at 1/{1 / self.load.scale:.4g} of its size"
        else:
            scale = f", render at {self.load.scale:.4g} times its size"
        order = ", line by line" if self.load.sequential else ", whole in memory"
        return f"{title}{frames}{scale}{order}"

    def _save_text(self) -> str:
        return " or ".join(_described(settings) for settings in self.save) + (
            ", whichever is smaller" if len(self.save) > 1 else ""
        )


def _described(settings: SaveSettings) -> str:
    row = FORMATS[settings.format]
    quality = row.quality if settings.quality is None else settings.quality
    progressive = row.name == "jpg" if settings.progressive is None else settings.progressive
    details = [
        "lossless" if settings.lossless else f"quality {quality}" if row.quality else "",
        "progressive" if row.interlaces and progressive else "",
        "" if settings.effort is None else f"effort {settings.effort}",
        "" if settings.max_bytes is None else f"at most {settings.max_bytes:,} bytes",
    ]
    return ", ".join([row.title, *filter(None, details)])
