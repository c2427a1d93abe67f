"""The fonts that are allowed: those of the extra ``fonts``, and those in folders of one's own."""

from __future__ import annotations

import bisect
import functools
import importlib.util
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from imgsvc_core.fonts.sfnt import SUFFIXES, FontFile, letters_of, read_font

FOLDERS, SYSTEM = "IMGSVC_FONTS_FOLDERS", "IMGSVC_FONTS_SYSTEM"
"""Environment variables: folders of fonts, by commas or as a JSON array, and whether the fonts of the
system are allowed.
"""

_PACKAGES = ("fontpkg_inter", "manimgx_fonts", "manimgx_fonts_cjk")
_OF_SYSTEM = ("/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts")
_MOST_FILES = 5000


@attrs.frozen(eq=False, repr=False)
class Catalog:
    """The fonts of some folders.

    ``families`` has names of families by their lower-case form with plain spaces, and ``broken`` the names of
    files that are no fonts, and of folders that cannot be read.
    """

    folders: tuple[str, ...]
    families: Mapping[str, str]
    fonts: tuple[FontFile, ...]
    broken: tuple[str, ...]

    @property
    def digest(self) -> str:
        """A digest that changes with the content of the fonts."""
        import hashlib  # loads OpenSSL

        return hashlib.sha256(b"".join(font.checksums for font in self.fonts)).hexdigest()

    @property
    def colored(self) -> bool:
        """True if a font has letters in several colors."""
        return any(font.colored for font in self.fonts)

    def has(self, letter: str) -> bool:
        """Return True if a font has a letter. Fonts are read until one has it."""
        return any(_has(font, ord(letter)) for font in self.fonts)

    def family(self, name: str) -> str | None:
        """Return the family of this name, whatever its case and its spaces, or None."""
        return self.families.get(_key(name))

    def family_with(self, letters: str, families: Iterable[str]) -> str | None:
        """Return the first of some families that has a font with all of some letters, or None."""

        def has_all(font: FontFile) -> bool:
            return all(_has(font, ord(letter)) for letter in letters)

        return next((name for name in families if any(map(has_all, self._of(name)))), None)

    def ranges(self, family: str) -> list[tuple[int, int]]:
        """Return the first and the last letters of the ranges that the fonts of a family have."""
        return sorted(pair for font in self._of(family) for pair in zip(*_ranges(font), strict=True))

    def _of(self, family: str) -> Iterator[FontFile]:
        return (font for font in self.fonts if family in font.families)


def catalog() -> Catalog:
    """Return the allowed fonts. They are read once: a process notices no later change of files."""
    return _read(_folders(os.environ.get(FOLDERS, ""), os.environ.get(SYSTEM, "").lower() in ("1", "true")))


@functools.cache
def _folders(listed: str, system: bool) -> tuple[str, ...]:
    found = _of_json(listed) if listed.startswith("[") else None
    if found is None:
        found = [folder.strip() for folder in listed.split(",") if folder.strip()]
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        found += (spec.submodule_search_locations or ()) if spec is not None else ()
    return (*found, *(filter(os.path.isdir, _OF_SYSTEM) if system else ()))


def _of_json(listed: str) -> list[str] | None:
    """Return the texts of a JSON array, or None if it is none: names of folders may begin with a bracket."""
    import json  # takes as long as reading the fonts

    try:
        return list(map(str, json.loads(listed)))
    except ValueError:
        return None


@functools.cache
def _read(folders: tuple[str, ...]) -> Catalog:
    families: dict[str, str] = {}
    broken: list[str] = []
    fonts: list[FontFile] = []
    for path in _files(folders, lambda error: broken.append(Path(error.filename).name)):
        try:
            fonts.append(read_font(path))
        except (OSError, ValueError, struct.error):
            broken.append(path.name)
    for font in fonts:
        families |= {_key(name): name for name in font.families if _key(name) not in families}
    return Catalog(folders, families, tuple(fonts), tuple(broken))


def _key(family: str) -> str:
    """Return a name of a family in lower case and with plain spaces; Japanese ones have wide spaces."""
    return " ".join(family.lower().split())


@functools.cache
def _ranges(font: FontFile) -> tuple[Sequence[int], Sequence[int]]:
    """Return the first and the last letters of the ranges of a font."""
    try:
        found = letters_of(font)
    except (OSError, ValueError, struct.error):
        return [], []
    return [first for first, _ in found], [last for _, last in found]


def _has(font: FontFile, letter: int) -> bool:
    starts, ends = _ranges(font)
    place = bisect.bisect_right(starts, letter) - 1
    return place >= 0 and letter <= ends[place]


def _files(folders: tuple[str, ...], refuse: Callable[[OSError], None]) -> Iterator[Path]:
    """Yield the font files of folders, in an order that is the same on every machine.

    ``refuse`` is called with the error of each folder that cannot be read.
    """
    for folder in folders:
        walk = os.walk(folder, onerror=refuse)
        names = (os.path.join(inner, name) for inner, _, files in walk for name in files)
        found = sorted(name for name in names if os.path.splitext(name)[1].lower() in SUFFIXES)
        yield from map(Path, found[:_MOST_FILES])
