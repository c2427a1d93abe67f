"""All endpoints of the service."""

from __future__ import annotations

from imgsvc_http.endpoints import account, health, images, keyfiles, processing, watermarks
from imgsvc_http.routing import Route

ROUTES: tuple[Route, ...] = (
    *processing.ROUTES,
    *account.ROUTES,
    *watermarks.ROUTES,
    *keyfiles.ROUTES,
    *images.ROUTES,
    *health.ROUTES,
)
"""In the order of documentation."""
