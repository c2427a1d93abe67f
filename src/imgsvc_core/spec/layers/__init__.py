"""Layers: pictures, shapes and gradients that are laid over the picture."""

from imgsvc_core.spec.layers.gradient import Gradient
from imgsvc_core.spec.layers.layer import Layer
from imgsvc_core.spec.layers.length import Length
from imgsvc_core.spec.layers.picture import Picture
from imgsvc_core.spec.layers.shape import Shape

__all__ = ["Gradient", "Layer", "Length", "Picture", "Shape"]

MOST_LAYERS = 100
"""The most layers of a request."""
