"""Settings of the service from a file, the environment and ``--set``, for the commands that need them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli import importing
from imgsvc_core.errors import MissingDependency, invalid

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Settings as a TOML file. [default: the file that IMGSVC_CONFIG names]",
)
set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting such as server.port=443; overrides file and environment.",
)


def with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--config`` and ``--set``, and the settings as its argument ``settings``."""

    @config_option
    @set_option
    @wraps(command)
    def wrapped(*args: Any, config: Path | None, assignments: tuple[str, ...], **kwargs: Any) -> Any:
        return command(*args, settings=load_settings(config, assignments), **kwargs)

    return wrapped


def load_settings(
    config: Path | None = None, assignments: tuple[str, ...] = (), values: Mapping[str, object] | None = None
) -> Settings:
    """Return the settings of a file, the environment, ``NAME=VALUE`` assignments, and values by path.

    Raises:
        SpecError: with everything that is wrong with them.
        MissingDependency: the service is not installed.
    """
    with service_packages():
        from imgsvc_http.settings import Settings

    flags: dict[str, object] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            message = "Option '--set' must be NAME=VALUE such as server.port=443, got one without ="
            raise invalid("--set", message)
        flags[name.strip()] = value
    given = {name: value for name, value in (values or {}).items() if value is not None}
    return Settings.load(config, os.environ, {**flags, **given})


@contextlib.contextmanager
def service_packages() -> Iterator[None]:
    """Raise `MissingDependency` if the block cannot import a package that the service needs."""
    try:
        with importing():
            yield
    except ImportError as error:
        message = f"The service is not installed ({error}): pip install 'imgsvc[http]'"
        raise MissingDependency(message) from error
