"""The settings of the service: `sections` declares them, `all_settings` reads and writes them."""

from imgsvc_http.settings.all_settings import SECTIONS, SETTINGS, Settings, render
from imgsvc_http.settings.sections import (
    MOST_RETRIES,
    QUOTA,
    Database,
    Fetch,
    Server,
    Social,
    Workers,
)

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
