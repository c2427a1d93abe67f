"""The settings of the service: `sections` declares them, `all_settings` reads and writes them."""

from imgsvc_http.settings.all_settings import SECTIONS, SETTINGS, Settings, render
from imgsvc_http.settings.origins import Origin
from imgsvc_http.settings.sections import (
    MOST_RETRIES,
    QUOTA,
    CacheSettings,
    DatabaseSettings,
    DeliverySettings,
    FetchSettings,
    ServerSettings,
    SocialSettings,
    WorkersSettings,
)
from imgsvc_http.settings.sizing import Sizing, sizing_of

__all__ = [
    "MOST_RETRIES",
    "QUOTA",
    "SECTIONS",
    "SETTINGS",
    "CacheSettings",
    "DatabaseSettings",
    "DeliverySettings",
    "FetchSettings",
    "Origin",
    "ServerSettings",
    "Settings",
    "Sizing",
    "SocialSettings",
    "WorkersSettings",
    "render",
    "sizing_of",
]
