"""All endpoints of the service."""

from __future__ import annotations

from imgsvc_http.endpoints import account, cache, health, keyfiles, presets, watermarks, webhooks
from imgsvc_http.routing import Route
from imgsvc_http.ways import image, processing, stored

ROUTES: tuple[Route, ...] = (
    *processing.ROUTES,
    *image.ROUTES,
    *webhooks.ROUTES,
    *account.ROUTES,
    *watermarks.ROUTES,
    *keyfiles.ROUTES,
    *presets.ROUTES,
    *stored.ROUTES,
    *cache.ROUTES,
    *health.ROUTES,
)
"""In the order of documentation."""
