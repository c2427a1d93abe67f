"""What the command opens in the browser."""

from __future__ import annotations

import subprocess
import webbrowser


def open_in_browser(url: str) -> None:
    """Open a URL in the browser. Without one, tell nothing: callers print where the page is."""
    try:
        subprocess.Popen(["xdg-open", url], stderr=subprocess.DEVNULL)
    except OSError:  # there is none on macOS and Windows
        webbrowser.open(url)
