"""Find out if a request leaves transparent pixels."""

from __future__ import annotations

from imgsvc_core._runtime.deadline import Deadline, in_memory
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.limits import Limits
from imgsvc_core.pixels.channels import without_idle_alpha
from imgsvc_core.pixels.render import render
from imgsvc_core.pixels.watermarks import ReceivedWatermarks
from imgsvc_core.plan import compile_plan
from imgsvc_core.sources.opening import Opened
from imgsvc_core.spec import Spec


def is_transparent(opened: Opened, request: Spec, limits: Limits, deadline: Deadline) -> bool:
    """Return True if any pixel of the result is transparent. The request must lay no pictures over it."""
    plan = compile_plan(request, opened.info, limits=limits)
    marks = ReceivedWatermarks({}, limits, deadline)
    with translate_errors(opened.info.format), deadline.watching(opened.load_image(plan.load)) as image:
        rendered = render(image, plan, marks.picture).image
        return bool(without_idle_alpha(in_memory(rendered)).hasalpha())
