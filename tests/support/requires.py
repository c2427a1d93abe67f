"""What a test needs from the machine: without it, skipped on a developer's machine and failed in CI."""

from __future__ import annotations

import importlib
import os
import shutil
import socket
from types import ModuleType
from typing import NoReturn

import pytest


def program(name: str, *other_names: str) -> str:
    """Path of the first of these programs that is installed."""
    names = (name, *other_names)
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        missing(f"the program {' or '.join(names)} is not installed")
    return path


def module(name: str) -> ModuleType:
    """The imported module of an optional package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing(f"the package of module {name} is not installed ({error})")


def server(host: str, port: int) -> tuple[str, int]:
    """Host and port of a server that accepts connections."""
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError as error:
        missing(f"no server answers at {host}:{port} ({error})")
    return host, port


def missing(reason: str) -> NoReturn:
    """Skip the running test; fail it where ``CI=true``, because there everything must be present."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must provide what tests need: {reason}.")
    pytest.skip(reason)
