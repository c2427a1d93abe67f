"""Answers of the service itself that are no success: what the library's errors do not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from imgsvc_core.errors import ImgsvcError, Problem, SpecError
from imgsvc_http.answering.statuses import status_of

ENCODINGS = ("gzip", "deflate")
"""How bodies may be compressed."""


class Refusal(Exception):
    """A request that is not done: its status, a stable slug, and one sentence for people."""

    def __init__(
        self,
        status: HTTPStatus,
        slug: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        problems: Iterable[Problem] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.slug = slug
        self.message = message
        self.headers = dict(headers or {})
        self.problems = tuple(problems)

    @classmethod
    def of(cls, error: ImgsvcError) -> Refusal:
        """An error of the library as an answer."""
        problems = error.problems if isinstance(error, SpecError) else ()
        return cls(status_of(error), error.slug, error.message, problems=problems)


def invalid(path: str, message: str) -> Refusal:
    """One wrong parameter."""
    return Refusal.of(SpecError([Problem(path, message)]))


def unauthorized() -> Refusal:
    """No working key."""
    challenges = 'Basic realm="imgsvc", charset="UTF-8", Bearer realm="imgsvc"'
    return Refusal(
        HTTPStatus.UNAUTHORIZED,
        "unauthorized",
        "The request needs a valid API key: send it as the user name of HTTP Basic with an empty password, "
        "or as Authorization: Bearer.",
        headers={"WWW-Authenticate": challenges},
    )


def insufficient_scope(scope: str) -> Refusal:
    """A key that is for something else."""
    return Refusal(
        HTTPStatus.FORBIDDEN,
        "insufficient_scope",
        f"The API key lacks the scope '{scope}' that this call needs: use another key.",
    )


def https_required() -> Refusal:
    """A call without TLS; not redirected, as its key has crossed the network already."""
    return Refusal(
        HTTPStatus.FORBIDDEN,
        "https_required",
        "Plain HTTP is refused: use https://, and replace the API key if this request carried it.",
        headers={"Connection": "close"},
    )


def not_found(what: str) -> Refusal:
    """Something that is not there."""
    return Refusal(HTTPStatus.NOT_FOUND, "not_found", f"There is no such {what}.")


def method_not_allowed(method: str, allowed: Iterable[str]) -> Refusal:
    """Another method than those that a path has."""
    listed = ", ".join(sorted(allowed))
    return Refusal(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "method_not_allowed",
        f"The method {method[:40]} is not allowed here: use {listed}.",
        headers={"Allow": listed},
    )


def gone(what: str) -> Refusal:
    """Something that was there."""
    return Refusal(HTTPStatus.GONE, "expired", f"The {what} has expired: process its source again.")


def unsupported_media_type(expected: str, got: str) -> Refusal:
    """A body of another type."""
    return Refusal(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        f"The Content-Type header must be {expected}, got '{got[:80]}'.",
    )


def unsupported_encoding(got: str) -> Refusal:
    """A body that is compressed in another way."""
    return Refusal(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "unsupported_encoding",
        f"The Content-Encoding header must be {' or '.join(ENCODINGS)} or left out, got '{got[:80]}'.",
        headers={"Accept-Encoding": ", ".join(ENCODINGS), "Connection": "close"},
    )


def invalid_json(reason: str) -> Refusal:
    """A body that is no JSON."""
    return Refusal(HTTPStatus.BAD_REQUEST, "invalid_json", f"The body must be valid JSON: {reason}.")


def invalid_multipart(reason: str) -> Refusal:
    """A body that is no multipart form."""
    return Refusal(
        HTTPStatus.BAD_REQUEST, "invalid_multipart", f"The body must be a valid multipart form: {reason}."
    )


def broken_body() -> Refusal:
    """A body that ends early, or is not encoded as its headers say."""
    return Refusal(
        HTTPStatus.BAD_REQUEST,
        "broken_body",
        "The body must be complete, and encoded as Content-Encoding and Transfer-Encoding say.",
        headers={"Connection": "close"},
    )


def body_too_large(what: str, limit: int) -> Refusal:
    """A body that is refused while it comes in."""
    return Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body_too_large",
        f"{what} may have at most {limit:,} bytes: send less.",
        headers={"Connection": "close"},
    )


def body_too_slow(seconds: float) -> Refusal:
    """A body that takes for ever."""
    return Refusal(
        HTTPStatus.REQUEST_TIMEOUT,
        "body_too_slow",
        f"The body did not arrive within {seconds:g} seconds: send it faster.",
        headers={"Connection": "close"},
    )


def quota_exceeded(total: int) -> Refusal:
    """No pictures left this month."""
    return Refusal(
        HTTPStatus.PAYMENT_REQUIRED,
        "quota_exceeded",
        f"The monthly quota of {total:,} images is used up: raise it, or wait for the next month (UTC).",
    )


def rate_exceeded(seconds: int) -> Refusal:
    """Too many requests."""
    return Refusal(
        HTTPStatus.TOO_MANY_REQUESTS,
        "rate_limit_exceeded",
        f"Rate limit exceeded. Retry in {seconds} seconds.",
        headers={"Retry-After": str(seconds)},
    )


def overloaded(seconds: int) -> Refusal:
    """More work than there is room for."""
    return Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "overloaded",
        f"The service is busy. Retry in {seconds} seconds.",
        headers={"Retry-After": str(seconds)},
    )


def not_ready(message: str) -> Refusal:
    """A node that takes no requests."""
    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "not_ready", message, headers={"Retry-After": "5"})


def shutting_down() -> Refusal:
    """A request that is not done when the service ends."""
    refusal = not_ready("The service is shutting down before the answer is ready: send the request again.")
    refusal.headers["Connection"] = "close"
    return refusal


def idempotency_conflict() -> Refusal:
    """A key that was used for another request."""
    return Refusal(
        HTTPStatus.CONFLICT,
        "idempotency_conflict",
        "The Idempotency-Key was used for another request: send a new key.",
    )


def still_running() -> Refusal:
    """A key whose request is not finished."""
    return Refusal(
        HTTPStatus.CONFLICT,
        "request_in_progress",
        "The request of this Idempotency-Key is still being processed. Retry in 1 seconds.",
        headers={"Retry-After": "1"},
    )
