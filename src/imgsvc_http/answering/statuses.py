"""Errors of the library as HTTP statuses; nothing else in the project knows them."""

from __future__ import annotations

from http import HTTPStatus

from imgsvc_core import errors

STATUSES: tuple[tuple[type[errors.ImgsvcError], HTTPStatus], ...] = (
    (errors.SpecError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.SourceTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (errors.SourceError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.LimitExceeded, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.UnsupportedOperation, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.TargetError, HTTPStatus.FAILED_DEPENDENCY),
    (errors.ImgsvcError, HTTPStatus.INTERNAL_SERVER_ERROR),
)
"""Error classes and statuses, the first that fits."""


def status_of(error: errors.ImgsvcError) -> HTTPStatus:
    """The status of the answer to a request that ended with an error."""
    return next(status for kind, status in STATUSES if isinstance(error, kind))
