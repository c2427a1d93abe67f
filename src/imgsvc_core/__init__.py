"""imgsvc: one typed request for an image, compiled to libvips.

>>> import imgsvc_core as imgsvc
>>> spec = imgsvc.parse({"resize": {"width": 800}, "output": {"format": "webp"}})
>>> spec == imgsvc.Spec(resize=imgsvc.Resize(width=800), output=imgsvc.Output(format="webp"))
True
"""

from typing import TYPE_CHECKING

from imgsvc_core import errors
from imgsvc_core._runtime.public_names import names_later, present_as
from imgsvc_core.errors import *
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS, Format
from imgsvc_core.inspection import explain, inspect, palette
from imgsvc_core.limits import Limits
from imgsvc_core.plan import PHASES, Plan
from imgsvc_core.plan.faces import Face
from imgsvc_core.sources.receiving import Source
from imgsvc_core.spec import (
    FACTS,
    OPERATIONS,
    Background,
    Color,
    Operation,
    Output,
    Param,
    Redact,
    Request,
    Spec,
    Watermark,
    adjust,
    filters,
    frame,
    geometry,
    params,
    parse,
    request_schema,
    unparse,
)
from imgsvc_core.spec.adjust import *
from imgsvc_core.spec.filters import *
from imgsvc_core.spec.frame import *
from imgsvc_core.spec.geometry import *
from imgsvc_core.targets.result import Result, Timing, Variants
from imgsvc_core.targets.writing import Target

if TYPE_CHECKING:
    from imgsvc_core._runtime.workers import WorkerPool
    from imgsvc_core.asynchronous import aprocess
    from imgsvc_core.processing import process, process_variants, to_numpy
    from imgsvc_core.sheets import contact_sheet
    from imgsvc_core.similarity.comparison import Similarity, compare
    from imgsvc_core.spec.layers import Gradient, Layer, Picture, Shape

__version__ = "1.0.0"

# These load libvips or an event loop, which take time where requests are written or headers read, or what few
# requests ask for.
__getattr__ = names_later(
    __name__,
    {
        "_runtime.workers": ("WorkerPool",),
        "asynchronous": ("aprocess",),
        "processing": ("process", "process_variants", "to_numpy"),
        "sheets": ("contact_sheet",),
        "similarity.comparison": ("Similarity", "compare"),
        "spec.layers": ("Gradient", "Layer", "Picture", "Shape"),
    },
    present=True,
)


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "FACTS",
    "FORMATS",
    "OPERATIONS",
    "PHASES",
    "Background",
    "Color",
    "Face",
    "Format",
    "Gradient",
    "ImageInfo",
    "Layer",
    "Limits",
    "Operation",
    "Output",
    "Param",
    "Picture",
    "Plan",
    "Redact",
    "Request",
    "Result",
    "Shape",
    "Similarity",
    "Source",
    "Spec",
    "Target",
    "Timing",
    "Variants",
    "Watermark",
    "WorkerPool",
    "__version__",
    "aprocess",
    "compare",
    "contact_sheet",
    "explain",
    "inspect",
    "palette",
    "params",
    "parse",
    "process",
    "process_variants",
    "request_schema",
    "to_numpy",
    "unparse",
]
__all__ += errors.__all__
__all__ += adjust.__all__
__all__ += filters.__all__
__all__ += frame.__all__
__all__ += geometry.__all__

for _name in set(__all__) & globals().keys():
    present_as(__name__, globals()[_name])
