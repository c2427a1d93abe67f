"""Where commands of the service take their settings from: a file, the environment, ``--set``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imgsvc_core.errors import MissingDependency, Problem, SpecError

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings


def with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--config`` and ``--set``, and the settings they lead to as its argument ``settings``.

    Other options of the command may be settings too: `settings_of` takes their values by path.
    """

    @click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Settings as a TOML file. [default: the one that IMGSVC_CONFIG names]",
    )
    @click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting such as server.port=443; wins over file and environment.",
    )
    @wraps(command)
    def wrapped(*args: Any, config: Path | None, assignments: tuple[str, ...], **kwargs: Any) -> Any:
        return command(*args, settings=settings_of(config, assignments), **kwargs)

    return wrapped


def settings_of(
    config: Path | None = None,
    assignments: tuple[str, ...] = (),
    values: Mapping[str, object] | None = None,
) -> Settings:
    """The settings of a file, the environment, ``NAME=VALUE`` assignments, and values by path.

    Raises:
        SpecError: with everything that is wrong with them.
        MissingDependency: the service is not installed.
    """
    from imgsvc_http.settings import Settings

    flags: dict[str, object] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            message = f"Option '--set' must be NAME=VALUE such as server.port=443, got '{assignment}'"
            raise SpecError([Problem("--set", message)])
        flags[name.strip()] = value
    given = {name: value for name, value in (values or {}).items() if value is not None}
    return Settings.load(config, os.environ, {**flags, **given})


def needs_service(error: ImportError) -> MissingDependency:
    """What to tell where a package of the service is not there."""
    return MissingDependency(f"The service is not installed ({error}): pip install 'imgsvc[http]'")
