"""The HTTPS face of the library: `create_app` gives an aiohttp application.

>>> from imgsvc_http import Settings, create_app
>>> app = create_app(Settings())
"""

from imgsvc_http.app import create_app
from imgsvc_http.settings import Settings

__all__ = ["Settings", "create_app"]
