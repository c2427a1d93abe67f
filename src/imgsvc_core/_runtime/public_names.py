"""Classes and functions under the name of the package that makes them public, which may load them later."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any


def names_later(
    package: str, modules: Mapping[str, tuple[str, ...]], *, present: bool = False
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that loads a module when one of its names is asked for.

    ``modules`` are the modules in the package, with the names that the package makes public. With ``present``
    these classes and functions give the package as their module.
    """
    owners = {name: module for module, names in modules.items() for name in names}

    def found(name: str) -> Any:
        if name not in owners:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{owners[name]}"), name)
        setattr(sys.modules[package], name, value)
        if present:
            present_as(package, value)
        return value

    return found


def present_as(module: str, value: Any) -> None:
    """Let a class or function give another module as its own: in messages, in `help` and in pickles.

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
