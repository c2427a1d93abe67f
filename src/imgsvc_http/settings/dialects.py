"""Dialects: URLs of other services that this one answers, and the accounts that pay for them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import attrs

from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.settings.kinds import BEGINNINGS
from imgsvc_http.settings.problems import setting_problem
from imgsvc_urls.dialects import Dialect, load, url_pattern

PATH = "delivery.dialects"
OF_ALL = ("account", "sources")
"""The settings that all dialects have."""


@attrs.frozen(kw_only=True)
class DialectSettings:
    """A dialect with its own settings, ``options``, and what all dialects have.

    Args:
        dialect: the dialect.
        account: the id of the account that pays, or empty for the one that pays for unsigned URLs.
        sources: beginnings of the URLs of sources, with wildcards. If empty, signed URLs may name any source,
            and unsigned ones only origins.
        options: the settings of the dialect.
    """

    dialect: Dialect = attrs.field(repr=False, eq=False)
    account: str = ""
    sources: tuple[str, ...] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)

    @cached_property
    def _allowed(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(url_pattern, self.sources))

    def allows(self, url: str) -> bool:
        """Return True if the URL of a source begins as it must."""
        return any(pattern.match(url) for pattern in self._allowed)


class Dialects:
    """Dialects by name: an array of names, or a table with the settings of each."""

    expectation = 'array of names such as ["imgproxy", "thumbor"], or table of names and settings'

    def parse(self, value: object) -> dict[str, DialectSettings]:
        if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
            value = {name: {} for name in value}
        if not isinstance(value, Mapping):
            raise ValueError(value)
        return {name: _dialect(name, item) for name, item in value.items()}

    def unparse(self, value: Mapping[str, DialectSettings]) -> dict[str, Any]:
        return {
            name: {
                **({"account": item.account} if item.account else {}),
                **({"sources": list(item.sources)} if item.sources else {}),
                **item.options,
            }
            for name, item in value.items()
        }


def _dialect(name: str, value: object) -> DialectSettings:
    if isinstance(value, DialectSettings):
        return value
    if not isinstance(value, Mapping):
        raise _wrong(name, "must be a table of settings such as account, keys and salts")
    options = dict(value)
    account, sources = options.pop("account", ""), options.pop("sources", ())
    if not isinstance(account, str):
        raise _wrong(f"{name}.account", "must be the id of an account")
    try:
        sources = BEGINNINGS.parse(sources)
    except ValueError:
        raise _wrong(f"{name}.sources", f"must be {BEGINNINGS.expectation}") from None
    try:
        make = load(name)
    except SpecError as error:
        raise _wrong(name, f"is wrong: {error.message}") from None
    _check_names(name, make, options)
    try:
        dialect = make(**options)
    except SpecError as error:
        raise SpecError(
            _problem(f"{name}.{problem.path}", f"is wrong: {problem.message}") for problem in error.problems
        ) from None
    except (TypeError, ValueError) as error:  # of a package that declares no settings
        raise _wrong(name, f"is wrong: {error}") from None
    return DialectSettings(dialect=dialect, account=account, sources=sources, options=options)


def _check_names(name: str, make: Callable[..., Dialect], options: Iterable[str]) -> None:
    """Raise `SpecError` if a dialect does not know a setting, or misses one."""
    arguments = inspect.signature(make).parameters.values()
    if any(argument.kind is inspect.Parameter.VAR_KEYWORD for argument in arguments):
        return
    known = {argument.name: argument.default is inspect.Parameter.empty for argument in arguments}
    problems = [
        _problem(f"{name}.{option}", f"is unknown: dialect '{name}' has {', '.join((*OF_ALL, *known))}")
        for option in options
        if option not in known
    ]
    problems += [
        _problem(f"{name}.{option}", "is required")
        for option, required in known.items()
        if required and option not in options
    ]
    if problems:
        raise SpecError(problems)


def _wrong(name: str, how: str) -> SpecError:
    return SpecError([_problem(name, how)])


def _problem(name: str, how: str) -> Problem:
    return setting_problem(f"{PATH}.{name}", how)
