"""All endpoints of the service."""

from __future__ import annotations

from imgsvc_http.endpoints import (
    account,
    cache,
    health,
    keyfiles,
    keys,
    presets,
    requests,
    watermarks,
    webhooks,
)
from imgsvc_http.routing import Route
from imgsvc_http.ways import image, processing, stored

ROUTES: tuple[Route, ...] = (
    *processing.ROUTES,
    *image.ROUTES,
    *webhooks.ROUTES,
    *account.ROUTES,
    *requests.ROUTES,
    *keys.ROUTES,
    *watermarks.ROUTES,
    *keyfiles.ROUTES,
    *presets.ROUTES,
    *stored.ROUTES,
    *cache.ROUTES,
    *health.ROUTES,
)
"""In the order of documentation."""
