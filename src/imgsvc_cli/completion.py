"""Completions that a shell offers for an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Offer = Callable[[click.Context, click.Parameter, str], list[str]]


class FileOrUrl(click.types.StringParamType):
    """A path, a URL or ``-``, which is not checked here; shells offer files."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell offer files."""
        return [CompletionItem(incomplete, type="file")]


def offering(words: Iterable[str]) -> Offer:
    """Return the completion of a parameter that is one of some words; they are checked elsewhere."""
    offered = tuple(words)
    return lambda _ctx, _param, incomplete: [word for word in offered if word.startswith(incomplete)]
