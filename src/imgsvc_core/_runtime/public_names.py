"""Classes and functions under the name of the package that makes them public."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any


def present_as(module: str, value: Any) -> None:
    """Let a class or function say that it is of a module: in messages, in `help` and in pickles.

    Annotations of fields are looked up in the module of their class, so those that are text are evaluated
    before.
    """
    if not isinstance(value, type | FunctionType):
        return
    if isinstance(value, type) and "__attrs_attrs__" in vars(value):  # others make theirs when it is read
        names = vars(sys.modules[value.__module__])
        own: dict[str, Any] = vars(value).get("__annotations__", {})
        for name, annotation in own.items():
            if isinstance(annotation, str):
                own[name] = eval(annotation, names, dict(vars(value)))
    value.__module__ = module
