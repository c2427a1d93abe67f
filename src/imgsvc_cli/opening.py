"""What the command opens in the browser."""

from __future__ import annotations

import subprocess
import webbrowser


def open_in_browser(place: str) -> None:
    """Open an address or a file in the browser. Without one, tell nothing: callers print it."""
    try:
        subprocess.Popen(["xdg-open", place], stderr=subprocess.DEVNULL)
    except OSError:
        webbrowser.open(place)
