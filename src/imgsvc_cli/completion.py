"""What shells offer where a part of the command line is begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Offer = Callable[[click.Context, click.Parameter, str], list[str]]


class Place(click.types.StringParamType):
    """A path, or a URL or ``-`` instead; nothing is checked. Shells offer paths."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names of files."""
        return [CompletionItem(incomplete, type="file")]


def offering(words: Iterable[str]) -> Offer:
    """For a parameter that is one of some words, whose other values are refused where it is used."""
    offered = tuple(words)
    return lambda _ctx, _param, incomplete: [word for word in offered if word.startswith(incomplete)]
