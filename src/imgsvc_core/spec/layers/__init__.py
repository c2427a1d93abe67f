"""Layers: pictures, texts, shapes and gradients that are laid over the picture."""

from imgsvc_core.spec.layers.effects import Box, Outline, Shadow
from imgsvc_core.spec.layers.gradient import Gradient
from imgsvc_core.spec.layers.layer import Layer
from imgsvc_core.spec.layers.picture import Picture
from imgsvc_core.spec.layers.repeat import Repeat
from imgsvc_core.spec.layers.shape import Shape
from imgsvc_core.spec.layers.text import Span, Text
from imgsvc_core.spec.length import Length

__all__ = [
    "Box", "Gradient", "Layer", "Length", "Outline", "Picture", "Repeat", "Shadow", "Shape", "Span", "Text",
]  # fmt: skip
