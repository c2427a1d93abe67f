"""imgsvc: one typed request for an image, compiled to libvips.

>>> import imgsvc_core as imgsvc
>>> spec = imgsvc.parse({"resize": {"width": 800}, "output": {"format": "webp"}})
>>> spec == imgsvc.Spec(resize=imgsvc.Resize(width=800), output=imgsvc.Output(format="webp"))
True
"""

from typing import TYPE_CHECKING, Any

from imgsvc_core.errors import (
    BudgetUnreachable,
    CorruptImage,
    EmptySource,
    EncodingFailed,
    ForkedProcess,
    ImageTooLarge,
    ImgsvcError,
    LimitExceeded,
    MachineFailed,
    MemoryLimitExceeded,
    MissingDependency,
    NameCollision,
    OutputTooLarge,
    Problem,
    ScratchUnwritable,
    SourceError,
    SourceTooLarge,
    SourceUnreachable,
    SpecError,
    TargetError,
    TimeLimitExceeded,
    UnsupportedFormat,
    UnsupportedOperation,
    WorkerDied,
)
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS, Format
from imgsvc_core.inspection import explain, inspect
from imgsvc_core.limits import Limits
from imgsvc_core.plan import PHASES, Plan
from imgsvc_core.plan.faces import Face
from imgsvc_core.spec import (
    FILTERS,
    OPERATIONS,
    Adjust,
    Auto,
    Blur,
    Border,
    Canvas,
    Color,
    Crop,
    Duotone,
    Filter,
    Flip,
    Halftone,
    Isolate,
    Mask,
    Monochrome,
    Operation,
    Output,
    Padding,
    Param,
    Pixellate,
    Resize,
    Rotate,
    Scale,
    Sepia,
    Spec,
    Trim,
    Vignette,
    Watermark,
    params,
    parse,
    request_schema,
    unparse,
)
from imgsvc_core.targets.result import Result, Timing

if TYPE_CHECKING:
    from imgsvc_core.processing import process, process_variants

__version__ = "1.0.0"


def __getattr__(name: str) -> Any:
    """Load libvips when pictures are processed, not when requests are written or headers read."""
    if name in ("process", "process_variants"):
        from imgsvc_core import processing

        globals()[name] = found = getattr(processing, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "FILTERS",
    "FORMATS",
    "OPERATIONS",
    "PHASES",
    "Adjust",
    "Auto",
    "Blur",
    "Border",
    "BudgetUnreachable",
    "Canvas",
    "Color",
    "CorruptImage",
    "Crop",
    "Duotone",
    "EmptySource",
    "EncodingFailed",
    "Face",
    "Filter",
    "Flip",
    "ForkedProcess",
    "Format",
    "Halftone",
    "ImageInfo",
    "ImageTooLarge",
    "ImgsvcError",
    "Isolate",
    "LimitExceeded",
    "Limits",
    "MachineFailed",
    "Mask",
    "MemoryLimitExceeded",
    "MissingDependency",
    "Monochrome",
    "NameCollision",
    "Operation",
    "Output",
    "OutputTooLarge",
    "Padding",
    "Param",
    "Pixellate",
    "Plan",
    "Problem",
    "Resize",
    "Result",
    "Rotate",
    "Scale",
    "ScratchUnwritable",
    "Sepia",
    "SourceError",
    "SourceTooLarge",
    "SourceUnreachable",
    "Spec",
    "SpecError",
    "TargetError",
    "TimeLimitExceeded",
    "Timing",
    "Trim",
    "UnsupportedFormat",
    "UnsupportedOperation",
    "Vignette",
    "Watermark",
    "WorkerDied",
    "__version__",
    "explain",
    "inspect",
    "params",
    "parse",
    "process",
    "process_variants",
    "request_schema",
    "unparse",
]
