"""All endpoints of the service."""

from __future__ import annotations

from imgsvc_http.delivery import endpoint as delivery
from imgsvc_http.endpoints import (
    account,
    cache,
    health,
    images,
    keyfiles,
    keys,
    presets,
    processing,
    requests,
    watermarks,
    webhooks,
)
from imgsvc_http.routing import Route

ROUTES: tuple[Route, ...] = (
    *processing.ROUTES,
    *delivery.ROUTES,
    *webhooks.ROUTES,
    *account.ROUTES,
    *requests.ROUTES,
    *keys.ROUTES,
    *watermarks.ROUTES,
    *keyfiles.ROUTES,
    *presets.ROUTES,
    *images.ROUTES,
    *cache.ROUTES,
    *health.ROUTES,
)
"""In the order of documentation."""
