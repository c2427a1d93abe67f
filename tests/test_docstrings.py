"""Everything public has a docstring, of its own or from the class or protocol that it follows."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from typing_extensions import is_protocol

import imgsvc_batch
import imgsvc_cli
import imgsvc_core
import imgsvc_http

PACKAGES = (imgsvc_core, imgsvc_batch, imgsvc_http, imgsvc_cli)
NOT_IMPORTED = ("__main__", ".migrations.")


def modules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not any(part in found.name for part in NOT_IMPORTED):
            yield importlib.import_module(found.name)


def members(owner: Any, module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public functions, classes and properties that an object defines itself."""
    for name, value in vars(owner).items():
        found = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        described = isinstance(found, property | functools.cached_property)
        documentable = described or inspect.isclass(found) or inspect.isfunction(found)
        own = getattr(found, "__module__", module.__name__) == module.__name__
        if documentable and own and not name.startswith("_"):
            yield name, getattr(owner, name)


def classes(package: ModuleType) -> Iterator[tuple[ModuleType, type]]:
    for module in modules(package):
        yield from ((module, value) for _, value in members(module, module) if inspect.isclass(value))


PROTOCOLS = [
    {name: inspect.getdoc(value) for name, value in members(found, module)}
    for package in PACKAGES
    for module, found in classes(package)
    if is_protocol(found)
]
"""The methods of each protocol, with their docstrings."""


def explained_by_protocol(owner: Any, name: str) -> bool:
    return any(methods.get(name) and all(hasattr(owner, one) for one in methods) for methods in PROTOCOLS)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_everything_public_is_documented(package: ModuleType) -> None:
    owners: list[tuple[ModuleType, Any]] = [(module, module) for module in modules(package)]
    missing = [
        f"{owner.__name__}.{name}"
        for module, owner in [*owners, *classes(package)]
        for name, value in members(owner, module)
        if not inspect.getdoc(value) and not explained_by_protocol(owner, name)
    ]
    assert missing == []
