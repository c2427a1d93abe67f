"""Show fontconfig the allowed fonts and no others, so that texts look the same on every machine."""

from __future__ import annotations

import contextlib
import functools
import os
import zlib
from collections.abc import Iterator
from html import escape
from pathlib import Path

from imgsvc_core.fonts.catalog import catalog

_CONFIGURATION = "FONTCONFIG_FILE"


def name_fonts() -> bool:
    """Name the allowed fonts in the environment, where fontconfig finds them at the first text.

    Return False if there are none, or if the environment names a configuration.
    """
    if _CONFIGURATION in os.environ or not catalog().families:
        return False
    os.environ[_CONFIGURATION] = str(_written())
    return True


_shown = False


@contextlib.contextmanager
def allowed_fonts() -> Iterator[None]:
    """Show fontconfig the allowed fonts, and no others, in a block that draws text.

    It reads its configuration at the first text of a process. Pango then has a thread, so a process that is
    forked later cannot draw text.
    """
    global _shown
    named = not _shown and name_fonts()
    try:
        yield
        _shown = True
    finally:
        if named:
            del os.environ[_CONFIGURATION]  # programs that are started have fonts of their own


@functools.cache
def use_fonts() -> None:
    """Show fontconfig the allowed fonts, and no others, by drawing a text."""
    import pyvips

    with allowed_fonts():
        pyvips.Image.text("x", font="9px", dpi=72)


def _written() -> Path:
    """Return a file with the configuration, which is written unless it is there."""
    folder = _folder()
    text = _configuration(catalog().folders, folder)
    path = folder / f"fonts-{zlib.crc32(text.encode()):08x}.conf"
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return path
    import tempfile  # takes as long as a small picture

    try:
        descriptor, name = tempfile.mkstemp(dir=folder)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="imgsvc-fonts-"))
        text = _configuration(catalog().folders, folder)
        descriptor, name = tempfile.mkstemp(dir=folder)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(name, path := folder / path.name)
    return path


def _folder() -> Path:
    """Return a folder of this user for caches."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if base.startswith("/") else os.path.expanduser("~/.cache"), "imgsvc")
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _configuration(folders: tuple[str, ...], cache: Path) -> str:
    listed = "".join(f"<dir>{escape(os.path.abspath(folder))}</dir>" for folder in folders)
    return (
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd"><fontconfig>'
        f"{listed}<cachedir>{escape(str(cache / 'fontconfig'))}</cachedir>"
        "<config><rescan><int>0</int></rescan></config></fontconfig>\n"
    )
