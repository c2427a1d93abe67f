"""Names of results, by a template."""

from __future__ import annotations

import string
from collections.abc import Collection
from pathlib import PurePosixPath

import attrs

from imgsvc_batch.places import can_be_named, readable
from imgsvc_core.errors import Problem, SpecError

FIELDS = {
    "stem": "name of the source without its suffix",
    "variant": "name of the variant",
    "width": "width of the result in pixels",
    "height": "height of the result in pixels",
    "format": "format of the result, as a suffix without its dot",
    "digest": "first 16 digits of the SHA-256 of the source",
}
"""What may stand in braces."""


@attrs.frozen
class Template:
    """How results are named, below the folder that their source has below its own."""

    text: str

    def __attrs_post_init__(self) -> None:
        if not can_be_named(self.text):
            raise _wrong(self.text, "it must be UTF-8, without NUL")
        try:
            parts = [part for part in string.Formatter().parse(self.text) if part[1] is not None]
        except ValueError as error:
            raise _wrong(self.text, str(error)) from error
        fields = [str(name) for _, name, _, _ in parts]
        if any(layout or conversion for _, _, layout, conversion in parts):
            raise _wrong(self.text, "only names stand in braces")
        unknown = [name for name in fields if name not in FIELDS]
        if unknown:
            raise _wrong(self.text, f"nothing is known of {{{unknown[0]}}}")
        if not {"stem", "digest"} & set(fields):
            raise _wrong(self.text, "without {stem} or {digest} all results would have one name")
        try:
            name = self.path("stem.jpg", variant="", width=1, height=1, suffix=".jpg", digest="0")
        except (ValueError, IndexError, KeyError) as error:
            raise _wrong(self.text, str(error)) from error
        if self.text.startswith("/") or ".." in name.split("/"):
            raise _wrong(self.text, "it must stay below the target")

    @property
    def fields(self) -> frozenset[str]:
        """What stands in braces."""
        return frozenset(name for _, name, _, _ in string.Formatter().parse(self.text) if name is not None)

    @classmethod
    def usual(cls, variants: int) -> Template:
        """The one that is taken where none is given."""
        return cls("{stem}.{format}" if variants == 1 else "{stem}-{variant}.{format}")

    def check(self, variants: Collection[str]) -> None:
        """Raise `SpecError` where several variants would have one name, or one would leave the target."""
        paths = {
            self.path("stem.jpg", variant=variant, width=number, height=number, suffix=".jpg", digest="0")
            for number, variant in enumerate(variants)
        }
        if len(paths) < len(variants):
            raise _wrong(self.text, "with several variants it must hold {variant}, {width} or {height}")
        if any(".." in path.split("/") or path.startswith("/") for path in paths):
            raise _wrong(self.text, "with these variants it would leave the target")

    def path(self, key: str, *, variant: str, width: int, height: int, suffix: str, digest: str) -> str:
        """The path of a result below the target."""
        source = PurePosixPath(key.lstrip("/"))  # as in buckets
        name = self.text.format(
            stem=source.stem,
            variant=variant,
            width=width,
            height=height,
            format=suffix.removeprefix("."),
            digest=digest[:16],
        )
        return str(source.parent / name)


def _wrong(text: str, reason: str) -> SpecError:
    known = ", ".join(f"{{{name}}}" for name in FIELDS)
    message = f"Batch 'name' parameter must be a template of {known}, got '{readable(text)}': {reason}"
    return SpecError([Problem("name", message)])
