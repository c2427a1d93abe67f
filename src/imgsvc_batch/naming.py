"""Name results by a template."""

from __future__ import annotations

import string
from collections.abc import Collection
from pathlib import PurePosixPath
from posixpath import splitext

import attrs

from imgsvc_batch.places import is_storable
from imgsvc_core import SpecError
from imgsvc_core.errors import invalid

FIELDS = {
    "stem": "name of the source without its suffix",
    "ext": "suffix of the source, without the dot",
    "folder": "path of the source's folder below SOURCE; without it, results keep their folders",
    "variant": "name of the variant",
    "width": "width of the result in pixels",
    "height": "height of the result in pixels",
    "format": "suffix of the result's format, without the dot",
    "digest": "first 16 digits of the SHA-256 of the source",
}
"""The fields of templates."""


@attrs.frozen
class Template:
    """The path of a result below the folder of its source, such as ``{variant}/{stem}.{format}``.

    With ``{folder}`` in it, it is the path below the target, such as ``{folder}/small/{stem}.{format}``.
    """

    text: str

    def __attrs_post_init__(self) -> None:
        if not is_storable(self.text):
            raise self._wrong("it must be UTF-8, without NUL")
        try:
            parts = [part for part in string.Formatter().parse(self.text) if part[1] is not None]
        except ValueError as error:
            raise self._wrong(str(error)) from error
        if any(layout or conversion for _, _, layout, conversion in parts):
            raise self._wrong("only names stand in braces")
        fields = [str(name) for _, name, _, _ in parts]
        unknown = next((name for name in fields if name not in FIELDS), None)
        if unknown is not None:
            raise self._wrong(f"there is no field {{{unknown}}}")
        if not {"stem", "digest"} & set(fields):
            raise self._wrong("without {stem} or {digest} all results would have one name")
        if self.text.startswith("/") or ".." in self.text.split("/"):
            raise self._wrong("it must stay below the target")

    @property
    def fields(self) -> frozenset[str]:
        """The fields in this template."""
        return frozenset(name for _, name, _, _ in string.Formatter().parse(self.text) if name is not None)

    @classmethod
    def default(cls, variants: int) -> Template:
        """Return the template for this number of variants."""
        return cls("{stem}.{format}" if variants == 1 else "{stem}-{variant}.{format}")

    def check(self, variants: Collection[str]) -> None:
        """Raise `SpecError` if several variants would always have one name."""
        if len(variants) > 1 and not {"variant", "width", "height"} & self.fields:
            raise self._wrong("with several variants it must hold {variant}, {width} or {height}")

    def path(self, key: str, *, variant: str, width: int, height: int, suffix: str, digest: str) -> str:
        """Return the path of a result below the target."""
        source = PurePosixPath(key.lstrip("/"))  # objects may have names that begin with a slash
        folder = "" if source.parent == PurePosixPath() else str(source.parent)
        stem, ext = splitext(source.name)  # pathlib splits `...jpg` and `a.` otherwise before Python 3.14
        name = self.text.format(
            stem=stem,
            ext=ext.removeprefix("."),
            folder=folder,
            variant=variant,
            width=width,
            height=height,
            format=suffix.removeprefix("."),
            digest=digest[:16],
        )
        return str(PurePosixPath(name.lstrip("/")) if "folder" in self.fields else source.parent / name)

    def _wrong(self, reason: str) -> SpecError:
        known = ", ".join(f"{{{name}}}" for name in FIELDS)
        message = f"Batch 'template' parameter must be a template of {known}, got {self.text!r}: {reason}"
        return invalid("template", message)
