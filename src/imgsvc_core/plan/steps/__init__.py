"""The steps of a plan, with all numbers worked out.

Every kind of step is one class: what it does to sizes and places, and how it is explained. What it does to
pixels is one function in `imgsvc_core.pixels.render.RENDERERS`, by the class of the step.
"""

from imgsvc_core.plan.steps.base import PlannedStep, Step
from imgsvc_core.plan.steps.color import Flatten, Recolor, SetOpacity, ToSrgb
from imgsvc_core.plan.steps.effects import CutCorners, DropAlpha, LayFrame, LayOnGround, MapTones
from imgsvc_core.plan.steps.frame import AddBorder, AddPadding, ApplyMask, LayWatermark
from imgsvc_core.plan.steps.geometry import CropBox, Extend, Resample, RotateFreely, SmartCrop, Turn
from imgsvc_core.plan.steps.spatial import ApplyFilter, Sharpen, Unsharp

__all__ = [
    "AddBorder",
    "AddPadding",
    "ApplyFilter",
    "ApplyMask",
    "CropBox",
    "CutCorners",
    "DropAlpha",
    "Extend",
    "Flatten",
    "LayFrame",
    "LayOnGround",
    "LayWatermark",
    "MapTones",
    "PlannedStep",
    "Recolor",
    "Resample",
    "RotateFreely",
    "SetOpacity",
    "Sharpen",
    "SmartCrop",
    "Step",
    "ToSrgb",
    "Turn",
    "Unsharp",
]
