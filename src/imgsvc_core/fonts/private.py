"""Show fontconfig the allowed fonts and no others, so that texts look the same on every machine."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from imgsvc_core.fonts.catalog import catalog

_CONFIGURATION = "FONTCONFIG_FILE"


def name_fonts() -> bool:
    """Name the allowed fonts in the environment, where fontconfig finds them at the first text.

    Return False if there are none, or if the environment names a configuration.
    """
    if _CONFIGURATION in os.environ or not catalog().families:
        return False
    import hashlib  # loads OpenSSL
    import tempfile

    folder = _folder()
    text = _configuration(catalog().folders, folder)
    path = folder / f"fonts-{hashlib.sha256(text.encode()).hexdigest()[:16]}.conf"
    if not path.exists():
        descriptor, name = tempfile.mkstemp(dir=folder)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    os.environ[_CONFIGURATION] = str(path)
    return True


@functools.cache
def use_fonts() -> None:
    """Show fontconfig the allowed fonts, and no others.

    It reads its configuration at the first text of a process, which is drawn here. Pango then has a thread,
    so a process that is forked later cannot draw text.
    """
    if name_fonts():
        import pyvips

        try:
            pyvips.Image.text("x", font="9px", dpi=72)
        finally:
            del os.environ[_CONFIGURATION]  # programs that are started have fonts of their own


def _folder() -> Path:
    """Return a folder of this user for caches, or one for this process if there is none."""
    import tempfile

    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if base.startswith("/") else os.path.expanduser("~/.cache"), "imgsvc")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="imgsvc-fonts-"))


def _configuration(folders: tuple[str, ...], cache: Path) -> str:
    from html import escape

    listed = "".join(f"<dir>{escape(os.path.abspath(folder))}</dir>" for folder in folders)
    return (
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd"><fontconfig>'
        f"{listed}<cachedir>{escape(str(cache / 'fontconfig'))}</cachedir>"
        "<config><rescan><int>0</int></rescan></config></fontconfig>\n"
    )
