"""Private names of dependencies: they stand in one module for each of the packages, and exist."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import imgsvc_core

SOURCES = Path(imgsvc_core.__file__).parents[1]
PACKAGES = ("imgsvc_core", "imgsvc_batch", "imgsvc_http", "imgsvc_cli")
PUBLIC = {"_replace", "_asdict", "_exit"}
"""Documented for all, although they begin with an underscore: those of named tuples, and `os._exit`."""

NAMES = {
    "aiobotocore.httpsession:AIOHTTPSession": ("_get_session",),
    "aiohttp:TCPConnector": ("_factory", "_loop"),
    "aiohttp.client_proto:ResponseHandler": ("_reading_paused",),
    "aiohttp.web:BaseRequest": ("_cache", "_cancel", "_version"),
    "aiohttp.web:BaseRunner": ("_unreg_site",),
    "aiohttp.web:BaseSite": ("_runner",),
    "aiohttp.web:RequestHandler": (
        "_current_request", "_force_close", "_lingering_time", "_messages", "_request_count",
        "_task_handler", "_waiter",
    ),
    "aiohttp.web_protocol": ("_ErrInfo",),
    "azure.core.pipeline.transport:AioHttpTransport": ("_get_request_data",),
    "dbos:DBOS": ("_recover_pending_workflows",),
    "fsspec:AbstractFileSystem": ("_get_kwargs_from_urls", "_strip_protocol"),
    "gcsfs:GCSFileSystem": (
        "_call", "_format_path", "_get_headers", "_get_params", "_location", "_request", "_set_session",
    ),
    "multipart:PushMultipartParser": ("_create_segment",),
    "ossfs:OSSFileSystem": ("_call_oss",),
    "PIL.ImageFile": ("_Tile",),
    "PIL.Image:Image": ("_size",),
    "pyvips:Image": ("_references",),
    "s3fs:S3FileSystem": ("_call_s3",),
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "name"), [(place, name) for place, names in NAMES.items() for name in names]
)
def test_the_dependencies_have_the_names(place: str, name: str) -> None:
    """As attributes of the class, or set by its own code."""
    module_name, _, class_name = place.partition(":")
    module = pytest.importorskip(module_name)
    if not class_name:
        assert hasattr(module, name)
        return
    kind = getattr(module, class_name)
    assert hasattr(kind, name) or any(
        name in instance_attributes(base) for base in inspect.getmro(kind) if base is not object
    ), f"{place} has no {name} any more: see what replaces it in private_names.py"


def instance_attributes(kind: type) -> set[str]:
    """The attributes of ``self`` that the code of a class sets."""
    tree = ast.parse(inspect.getsource(importlib.import_module(kind.__module__)))
    classes = (
        node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    return {
        node.attr
        for found in classes
        for node in ast.walk(found)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node)
    }


def names_in(file: Path) -> list[ast.AST]:
    """The parts of a module that give, read or import names."""
    kinds = (
        ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Name, ast.Attribute, ast.ImportFrom,
    )  # fmt: skip
    return [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, kinds)]


def is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC and name != "_"


def defined(nodes: list[ast.AST]) -> Iterator[str]:
    """The names that a module gives to functions, classes, variables and attributes."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node):
            yield node.attr


def foreign(nodes: list[ast.AST], own: set[str]) -> Iterator[str]:
    """The private names in a module that are not those of this project."""
    listed = {name for names in NAMES.values() for name in names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(PACKAGES):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            through_super = isinstance(node.value, ast.Call)
            if node.attr not in own or through_super or (node.attr in listed and not is_own(node)):
                yield node.attr


def test_they_stand_in_one_module_of_each_package() -> None:
    files = (file for package in PACKAGES for file in sorted((SOURCES / package).rglob("*.py")))
    found = {file: names_in(file) for file in files}
    modules = [file for file in found if file.name == "private_names.py"]
    packages = [file.relative_to(SOURCES).parts[0] for file in modules]
    assert packages == ["imgsvc_core", "imgsvc_batch", "imgsvc_http"]
    own = {name for file, nodes in found.items() if file not in modules for name in defined(nodes)}
    elsewhere = {
        f"{file.relative_to(SOURCES)}: {name}"
        for file, nodes in found.items()
        if file not in modules
        for name in foreign(nodes, own)
    }
    assert elsewhere == set()
    used = {name for file in modules for name in foreign(found[file], set())}
    used |= {name for file in modules for name in defined(found[file]) if is_private(name)}
    assert used == {name for names in NAMES.values() for name in names}
