"""The HTTPS face of the library: `create_app` gives an aiohttp application.

>>> from imgsvc_http import Settings, create_app
>>> app = create_app(Settings())
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from imgsvc_core._runtime.public_names import names_later

if TYPE_CHECKING:
    from imgsvc_http.app import create_app
    from imgsvc_http.settings import Settings

__all__ = ["Settings", "create_app"]

# The command and the workers import parts of the package, and are quicker without all of it.
__getattr__ = names_later(__name__, {"app": ("create_app",), "settings": ("Settings",)})
