"""What will be done to a picture, in order, with all sizes."""

from __future__ import annotations

from typing import Any

import attrs

from imgsvc_core.codecs.settings import LoadSettings, SaveSettings
from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan import reasons
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps import Step
from imgsvc_core.spec import Output, Spec


@attrs.frozen
class PlannedStep:
    """A step and the size of a frame after it."""

    step: Step
    size: Size


@attrs.frozen(kw_only=True)
class Plan:
    """The compiled request. ``str(plan)`` explains it; with several ``save`` the best file is taken.

    ``spec`` is the request, ``suffix`` that of the target's name, ``accept`` an HTTP header.
    """

    spec: Spec
    suffix: str = ""
    accept: str | None = None
    info: ImageInfo
    load: LoadSettings
    steps: tuple[PlannedStep, ...]
    save: tuple[SaveSettings, ...]
    frames: int

    @property
    def size(self) -> Size:
        """Width and height of a frame of the result."""
        return self.steps[-1].size if self.steps else Size(self.info.width, self.info.height)

    def lines(self) -> list[dict[str, Any]]:
        """Each stage as phase, what is done and why, and width and height of a frame after it."""
        steps = [item.step for item in self.steps]
        sizes = [Size(self.info.width, self.info.height), *(item.size for item in self.steps)]
        formats = [FORMATS[settings.format] for settings in self.save]
        output = self.spec.output or Output()
        load_why = reasons.of_load(self.load, steps, sizes, frames=self.frames)
        save_why = reasons.of_format(output, self.info, formats, self.suffix, self.accept)
        return [
            _line("load", self._load_text(), load_why, sizes[0]),
            *(
                _line(
                    step.phase, step.text, reasons.of_step(step, before, self.spec, self.info, formats), after
                )
                for step, before, after in zip(steps, sizes, sizes[1:], strict=False)
            ),
            _line("output", self._save_text(), save_why, self.size),
        ]

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
            + (f" ({line['why']})" if line["why"] else "")
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
        in_order = self.load.sequential and (self.frames == 1 or not self.steps)
        order = ", line by line" if in_order else ", whole in memory"
        return f"{title}{frames}{scale}{order}"

    def _save_text(self) -> str:
        return " or ".join(_described(settings) for settings in self.save) + (
            _CHOICE[self.save[0].max_bytes is not None] if len(self.save) > 1 else ""
        )


# Of several formats to write, without and with a bound of bytes.
_CHOICE = (", whichever is smaller", ", whichever gives up less of its quality to fit")


def _line(phase: str, text: str, why: str, size: Size) -> dict[str, Any]:
    return {"phase": phase, "text": text, "why": why, "width": size.width, "height": size.height}


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
