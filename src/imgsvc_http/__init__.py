"""The HTTPS face of the library: `create_app` gives an aiohttp application.

>>> from imgsvc_http import Settings, create_app
>>> app = create_app(Settings())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imgsvc_http.app import create_app
    from imgsvc_http.settings import Settings

__all__ = ["Settings", "create_app"]


def __getattr__(name: str) -> Any:
    # The command and the workers import parts of the package, and are quicker without all of it.
    if name == "create_app":
        from imgsvc_http.app import create_app

        return create_app
    if name == "Settings":
        from imgsvc_http.settings import Settings

        return Settings
    raise AttributeError(f"module 'imgsvc_http' has no attribute '{name}'")
