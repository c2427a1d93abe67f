"""Blocks of pointwise steps in exact arithmetic, and the lookup tables made from them."""

from __future__ import annotations

import numpy as np
import pyvips

from imgsvc_core.plan.color import weights
from imgsvc_core.plan.color.curves import FloatArray, apply_curves
from imgsvc_core.plan.color.steps import IsolateStep, VibranceStep
from imgsvc_core.plan.folding import Block, DuotoneBlock, LutBlock, MatrixBlock, ToneBlock


def evaluate(block: Block, x: FloatArray) -> FloatArray:
    """Apply a block to channel values in [0, 1], shape (n, bands), and clamp the result to [0, 1]."""
    match block:
        case LutBlock(steps):
            x = apply_curves(x, ((step.name, step.values) for step in steps))
        case MatrixBlock(fixed=fixed, scaled=scaled, weight=weight):
            y = x @ np.transpose(fixed)
            if scaled is not None and weight is not None:
                y = y + _weight(weight, x)[:, None] * (x @ np.transpose(scaled))
            x = y
        case DuotoneBlock(step):
            dark, light = np.asarray([step.dark, step.light]) / 255
            x = dark + (light - dark) * x[:, :1]
        case ToneBlock(blocks, color):
            x = np.repeat(x[:, :1], 3, axis=1)
            for inner in blocks:
                x = evaluate(inner, x)
            x = x if color else x[:, :1]
    return np.clip(x, 0, 1)


def _weight(step: VibranceStep | IsolateStep, x: FloatArray) -> FloatArray:
    if isinstance(step, VibranceStep):
        return weights.vibrance(x, step.value)
    return weights.isolate(x, step.color, step.threshold)


def lookup_table(block: LutBlock | ToneBlock, size: int, white: int) -> pyvips.Image:
    """Return the table of a block: ``size`` results from 0 to ``white`` (255 or 65535)."""
    ramp = np.linspace(0, 1, size)[:, None]
    values = np.floor(evaluate(block, ramp) * white + 0.5)
    return _table(values.astype(np.uint16 if white > 255 else np.uint8))


def isolate_table(step: IsolateStep) -> pyvips.Image:
    """Return the weights of isolate for 65,536 hues from -1 to 5 sextants, or saturations from 0 to 1."""
    ramp = np.linspace(0, 1, 65536)
    if weights.wants_gray(step.color):
        values = weights.isolate_of_distance(ramp, step.threshold)
    else:
        values = weights.isolate_of_hue(ramp * 6 - 1, step.color, step.threshold)
    return _table(values.astype(np.float32)[:, None])


def _table(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> pyvips.Image:
    return pyvips.Image.new_from_array(values[None])
