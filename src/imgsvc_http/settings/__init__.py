"""The settings of the service: `sections` declares them, `together` reads and writes them all."""

from imgsvc_http.settings.sections import (
    MOST_RETRIES,
    QUOTA,
    Database,
    Fetch,
    Server,
    Social,
    Workers,
)
from imgsvc_http.settings.together import SECTIONS, SETTINGS, Settings, render

__all__ = [
    "MOST_RETRIES",
    "QUOTA",
    "SECTIONS",
    "SETTINGS",
    "Database",
    "Fetch",
    "Server",
    "Settings",
    "Social",
    "Workers",
    "render",
]
