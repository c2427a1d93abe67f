"""Everything that is answered as an error: the service's own kinds in one table, and the library's errors."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

import attrs

from imgsvc_core import errors
from imgsvc_core.errors import ImgsvcError, Problem, SpecError
from imgsvc_http.state.failures import is_disk_full, is_unavailable
from imgsvc_http.storage.source_files import NoRoom
from imgsvc_urls import DialectError, InvalidSignature, UrlExpired

_log = logging.getLogger(__name__)
_CLOSE = {"Connection": "close"}
_MACHINE_FAILED = (
    "The service cannot process images now, and this one is not at fault. "
    "Retry in 10 seconds, or use another node."
)


@attrs.frozen
class RefusalKind:
    """A kind of error. Its sentence and its headers may hold values in braces."""

    status: HTTPStatus
    sentence: str
    headers: Mapping[str, str] = attrs.field(factory=dict)


KINDS: Mapping[str, RefusalKind] = {
    "broken_body": RefusalKind(
        HTTPStatus.BAD_REQUEST, "The body must be complete, and encoded as Transfer-Encoding says.", _CLOSE
    ),
    "invalid_http": RefusalKind(
        HTTPStatus.BAD_REQUEST, "The request must be valid HTTP/1.1: {reason}.", _CLOSE
    ),
    "invalid_json": RefusalKind(HTTPStatus.BAD_REQUEST, "The body must be valid JSON: {reason}."),
    "invalid_multipart": RefusalKind(
        HTTPStatus.BAD_REQUEST, "The body must be a valid multipart form: {reason}."
    ),
    "unauthorized": RefusalKind(
        HTTPStatus.UNAUTHORIZED,
        "The request needs a valid API key: send it as the user name of HTTP Basic with an empty password, "
        "or as Authorization: Bearer.",
        {"WWW-Authenticate": 'Basic realm="imgsvc", charset="UTF-8", Bearer realm="imgsvc"'},
    ),
    "quota_exceeded": RefusalKind(
        HTTPStatus.PAYMENT_REQUIRED,
        "The monthly quota of {total:,} images is used up: raise it, or wait for the next month (UTC).",
    ),
    # Not redirected, as its key has crossed the network already.
    "https_required": RefusalKind(
        HTTPStatus.FORBIDDEN,
        "Plain HTTP is refused: use https://, and replace the API key if this request carried it.",
        _CLOSE,
    ),
    "insufficient_scope": RefusalKind(
        HTTPStatus.FORBIDDEN, "The API key lacks the scope '{scope}' that this call needs: use another key."
    ),
    "not_found": RefusalKind(HTTPStatus.NOT_FOUND, "There is no such {what}."),
    "method_not_allowed": RefusalKind(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "The method {method} is not allowed here: use {allowed}.",
        {"Allow": "{allowed}"},
    ),
    "body_too_slow": RefusalKind(
        HTTPStatus.REQUEST_TIMEOUT, "The body did not arrive within {time}: send it faster.", _CLOSE
    ),
    "idempotency_conflict": RefusalKind(
        HTTPStatus.CONFLICT, "The Idempotency-Key was used for another request: send a new key."
    ),
    "request_in_progress": RefusalKind(
        HTTPStatus.CONFLICT,
        "The request of this Idempotency-Key is still being processed. Retry in 1 second.",
        {"Retry-After": "1"},
    ),
    "no_retry": RefusalKind(
        HTTPStatus.CONFLICT,
        "The webhook must be failed or scheduled to be sent again, got {status}: wait until it is settled.",
    ),
    "expired": RefusalKind(HTTPStatus.GONE, "The {what} has expired: process its source again."),
    "precondition_failed": RefusalKind(
        HTTPStatus.PRECONDITION_FAILED,
        "The {header} header must {rule}, got '{got:.80}': leave it out, or load the image again.",
        {"ETag": "{etag}"},
    ),
    "body_too_large": RefusalKind(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "{what} may have at most {limit:,} bytes: send less.", _CLOSE
    ),
    "unsupported_encoding": RefusalKind(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "The Content-Encoding header must be left out, got '{got:.80}': send the body as it is.",
        {"Accept-Encoding": "identity", **_CLOSE},
    ),
    "unsupported_media_type": RefusalKind(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The Content-Type header must be {expected}, got '{got:.80}'."
    ),
    "range_not_satisfiable": RefusalKind(
        HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
        "The range lies outside of the {size:,} bytes of the image.",
        {"Content-Range": "bytes */{size}"},
    ),
    "rate_limit_exceeded": RefusalKind(
        HTTPStatus.TOO_MANY_REQUESTS,
        "Rate limit exceeded. Retry in {seconds} seconds.",
        {"Retry-After": "{seconds}"},
    ),
    "internal_error": RefusalKind(
        HTTPStatus.INTERNAL_SERVER_ERROR, "An unexpected error occurred. Report it with the id {id}."
    ),
    "disk_full": RefusalKind(
        HTTPStatus.INSUFFICIENT_STORAGE,
        "The service has no disk space left for this request. Retry in 10 seconds, or use another node.",
        {"Retry-After": "10", **_CLOSE},
    ),
    "no_room": RefusalKind(
        HTTPStatus.INSUFFICIENT_STORAGE,
        "The images of this account that are received and processed now take as much room as is left for "
        "others. Retry in 10 seconds, or send fewer images at a time.",
        {"Retry-After": "10", **_CLOSE},
    ),
    "overloaded": RefusalKind(
        HTTPStatus.SERVICE_UNAVAILABLE, "The service is busy. Retry in 2 seconds.", {"Retry-After": "2"}
    ),
    "not_ready": RefusalKind(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The service is not ready, because {reason}: try again, or use another node.",
        {"Retry-After": "5"},
    ),
}
"""The service's own kinds of errors by their slugs, which never change."""

STATUSES: tuple[tuple[type[ImgsvcError], HTTPStatus], ...] = (
    (errors.SpecError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.SourceTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (errors.SourceError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.LimitExceeded, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.UnsupportedOperation, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InvalidSignature, HTTPStatus.FORBIDDEN),
    (UrlExpired, HTTPStatus.GONE),
    (DialectError, HTTPStatus.BAD_REQUEST),
    (errors.TargetError, HTTPStatus.FAILED_DEPENDENCY),
    (errors.ScratchUnwritable, HTTPStatus.INSUFFICIENT_STORAGE),
    (errors.MachineFailed, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.ImgsvcError, HTTPStatus.INTERNAL_SERVER_ERROR),
)
"""The statuses of the library's errors, by the first class that fits."""


def every_slug() -> set[str]:
    """Return the names of all errors: those of the service, and those of the library."""
    classes: list[type[ImgsvcError]] = [ImgsvcError]
    for cls in classes:
        classes += cls.__subclasses__()
    return {*KINDS, *(cls.slug for cls in classes[1:])}


@attrs.frozen(eq=False)
class Refusal(Exception):
    """A request that is answered with an error."""

    slug: str
    status: int
    message: str
    headers: Mapping[str, str] = attrs.field(factory=dict)
    problems: tuple[Problem, ...] = ()


def refusal(slug: str, **values: object) -> Refusal:
    """Return an error of a kind in `KINDS`, with the values that its texts hold in braces."""
    kind = KINDS[slug]
    headers = {name: text.format(**values) for name, text in kind.headers.items()}
    return Refusal(slug, kind.status, kind.sentence.format(**values), headers)


def refusal_of(error: ImgsvcError) -> Refusal:
    """Return an error of the library as it is answered."""
    if isinstance(error, DialectError):
        return Refusal(error.slug, error.status, error.message)
    if isinstance(error, SpecError):
        first = error.problems[0].expected
        return Refusal(error.slug, status_of(type(error)), first, problems=error.problems)
    if isinstance(error, errors.MachineFailed):  # whose own message is for the operator
        return Refusal(error.slug, status_of(type(error)), _MACHINE_FAILED, {"Retry-After": "10"})
    return Refusal(error.slug, status_of(type(error)), error.message, problems=problems_of(error))


def problems_of(error: ImgsvcError) -> tuple[Problem, ...]:
    """Return an error as the problem at the place in the request that it names, if it names one."""
    return (Problem(error.path, error.message),) if error.path else ()


def status_of(kind: type[ImgsvcError]) -> HTTPStatus:
    """Return the status of a class of the library's errors."""
    return next(status for base, status in STATUSES if issubclass(kind, base))


def as_refusal(error: Exception, request_id: str) -> Refusal:
    """Return any failure of a request as it is answered. Log it if the client is not to blame."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, ImgsvcError) and error.slug != ImgsvcError.slug:
        if status_of(type(error)) >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.error("%s failed: %s", request_id, error, exc_info=error)
        return refusal_of(error)
    if isinstance(error, NoRoom):
        return refusal("no_room")
    if is_disk_full(error):
        _log.error("%s failed, as the disk is full: %s", request_id, error)
        return refusal("disk_full")
    if errors.lacks_handles(error) or errors.lacks_threads(error):
        _log.error("%s failed, as no more files can be opened, or threads be started: %s", request_id, error)
        return refusal("overloaded")
    if is_unavailable(error):
        _log.error("%s failed, as the database does not answer: %s", request_id, error)
        return refusal("not_ready", reason="its database does not answer")
    _log.error("%s failed.", request_id, exc_info=error)
    return refusal("internal_error", id=request_id)
