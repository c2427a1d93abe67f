"""What stands between comments such as ``<!-- table: NAME -->`` in pages, made from the code.

Tables stand in the pages themselves, up to ``<!-- /table -->``, so that they can be read without a site.
``nox -s tables`` writes them again. As a Sphinx extension, this module makes them with
links of the site, and pictures and plans beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import calls
import tables

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

PAGES = Path(__file__).parents[1]
_KINDS: Mapping[str, Callable[[str], str]] = {
    "table": lambda name: tables.TABLES[name](),
    "operation": tables.operation,
    "calls": calls.calls,
}
_TABLE = re.compile(
    r"^<!-- (table|operation|calls): ([\w.]+) -->$"
    r"(?:\n(?:(?!<!-- (?:table|operation|calls):).*\n)*?<!-- /\1 -->$)?",
    re.MULTILINE,
)
_SITE_ONLY = "schema"
"""The table that is too long for a page, and that a command prints."""
_PICTURE = re.compile(r"^<!-- (strip|plan): ([\w.]+) -->$", re.MULTILINE)
_LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
_DROPDOWN = re.compile(r"^:::\{dropdown\} (.+)\n(?s:(.+?))\n:::$", re.MULTILINE)
_REFERENCE = re.compile(r"\{ref\}`([^`<]+) <([\w-]+)>`(\.)?")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", _filled)
    return {"parallel_read_safe": True}


def _fill(_app: Sphinx, page: str, source: list[str]) -> None:
    up = "../" * page.count("/")
    source[0] = as_site(source[0]).replace('src="STATIC/', f'src="{up}_static/')


def _filled(_app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
    """Return the pages with placeholders: what fills them may have changed, even if they have not."""
    return [page for page in env.found_docs if _has_placeholder(Path(env.doc2path(page)))]


def _has_placeholder(page: Path) -> bool:
    text = page.read_text(encoding="utf-8")
    return bool(_TABLE.search(text) or _PICTURE.search(text))


def as_site(text: str) -> str:
    """Return a page with tables, pictures and plans for Sphinx; an unknown name is a `KeyError`."""
    import plans
    import strips

    made = {"strip": strips.figures, "plan": lambda name: plans.PLANS[name]()}
    text = _TABLE.sub(lambda match: _KINDS[match[1]](match[2]), text)
    return _PICTURE.sub(lambda match: made[match[1]](match[2]), text)


def as_page(text: str) -> str:
    """Return a page with its tables made again, in Markdown that needs no site."""

    def made(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if name == _SITE_ONLY:
            return match[0]
        return f"<!-- {kind}: {name} -->\n\n{_plain(_KINDS[kind](name))}\n\n<!-- /{kind} -->"

    return _TABLE.sub(made, text)


def _plain(text: str) -> str:
    """Return Markdown of Sphinx without its own roles and directives."""
    text = _LABEL.sub(r'<a id="\1"></a>\n', text)
    text = _DROPDOWN.sub(r"<details>\n<summary>\1</summary>\n\n\2\n\n</details>", text)
    return _REFERENCE.sub(lambda match: f"[{match[1]}](../{tables.page_of(match[2])}#{match[2]})", text)


if __name__ == "__main__":
    for page in PAGES.rglob("*.md"):
        if "_build" not in page.parts:
            text = page.read_text(encoding="utf-8")
            if (made := as_page(text)) != text:
                page.write_text(made, encoding="utf-8")
                print(page.relative_to(PAGES.parent))
