"""Sphinx extension: comments such as ``<!-- table: NAME -->`` become tables, pictures and plans."""

from __future__ import annotations

import re
from typing import Any

import calls
import plans
import strips
import tables
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_PLACEHOLDER = re.compile(r"^<!-- (table|operation|strip|plan|calls): ([\w.]+) -->$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", _filled)
    return {"parallel_read_safe": True}


def _fill(_app: Sphinx, page: str, source: list[str]) -> None:
    up = "../" * page.count("/")
    source[0] = fill(source[0]).replace('src="STATIC/', f'src="{up}_static/')


def _filled(_app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
    """Return the pages with placeholders: what fills them may have changed, even if they have not."""
    return [page for page in env.found_docs if _PLACEHOLDER.search(env.doc2path(page).read_text("utf-8"))]


def fill(text: str) -> str:
    """Return the text with every placeholder replaced; an unknown name is a `KeyError`."""
    return _PLACEHOLDER.sub(_made, _PLACEHOLDER.sub(_made, text))


def _made(match: re.Match[str]) -> str:
    kind, name = match.groups()
    if kind in ("table", "plan"):
        return {"table": tables.TABLES, "plan": plans.PLANS}[kind][name]()
    return {"operation": tables.operation, "calls": calls.calls, "strip": strips.figures}[kind](name)
