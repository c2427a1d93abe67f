"""The functions that the rows of the table name, imported when a file needs them."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any


@functools.cache
def load_function(name: str) -> Any:
    """Import a function that a row names as ``module:function``."""
    module, function = name.split(":")
    return getattr(import_module(f"imgsvc_core.formats.{module}"), function)
