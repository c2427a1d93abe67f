"""CSS that browsers know and librsvg does not: custom properties, and colors for light and dark pages.

Drawings for web pages have them. librsvg draws black instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_DEEPEST = 4  # values that refer to others, as in ``--a: var(--b)``
_LONGEST = 100  # bytes of a value; colors and lengths have fewer
_MEDIA = re.compile(rb"@media\b[^{}@]*+\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\}")
_PROPERTY = re.compile(rb"""(?<![\w-])(--[\w-]++)\s*+:\s*+([^;{}"'<>]{1,100}?)\s*+(?=[;}"'<])""")
_VARIABLE = re.compile(rb"var\(\s*+(--[\w-]++)\s*+(?:,((?:[^()]|\([^()]*+\))*+))?\)")
_LIGHT_OR_DARK = re.compile(
    rb"light-dark\(((?:[^(),]|\([^()]*+\))++),(?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\)"
)


def with_known_styles(markup: bytes) -> bytes:
    """Return a drawing whose custom properties are replaced by their values, as on a light page.

    A property that has different values in parts of the drawing stays, and its fallback counts.
    """
    if b"var(" in markup:
        known = _values(markup)
        for _ in range(_DEEPEST):  # a fallback may have another one
            markup = _with_values(markup, known)
    return _LIGHT_OR_DARK.sub(rb"\1", markup) if b"light-dark(" in markup else markup


def _values(markup: bytes) -> Mapping[bytes, bytes]:
    """Return the properties with one short value, which refers to no other property."""
    stated: dict[bytes, set[bytes]] = {}
    for name, value in _PROPERTY.findall(_MEDIA.sub(b"", markup)):
        stated.setdefault(name, set()).add(value)
    known = {name: values.pop() for name, values in stated.items() if len(values) == 1}
    for _ in range(_DEEPEST):
        resolved = ((name, _with_values(value, known)) for name, value in known.items())
        known = {name: value for name, value in resolved if len(value) <= _LONGEST}
    return {name: value for name, value in known.items() if b"var(" not in value}


def _with_values(css: bytes, known: Mapping[bytes, bytes]) -> bytes:
    return _VARIABLE.sub(lambda use: known.get(use[1], use[2] or use[0]), css)
