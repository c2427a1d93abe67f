"""The kinds of steps that the compiler knows: it joins, reorders, folds them, or leaves them to decoders.

All other work is a row of `imgsvc_core.plan.pipeline`.
"""

from imgsvc_core.plan.steps.background import LayOnBackground, MakeBackdrop
from imgsvc_core.plan.steps.base import PLAIN, PlannedStep, Step, Traits
from imgsvc_core.plan.steps.color import Flatten, Recolor, ToSrgb, recoloring
from imgsvc_core.plan.steps.moves import CropBox, Extend, Resample, RotateFreely, SmartCrop, Turn

__all__ = [
    "PLAIN",
    "CropBox",
    "Extend",
    "Flatten",
    "LayOnBackground",
    "MakeBackdrop",
    "PlannedStep",
    "Recolor",
    "Resample",
    "RotateFreely",
    "SmartCrop",
    "Step",
    "ToSrgb",
    "Traits",
    "Turn",
    "recoloring",
]
