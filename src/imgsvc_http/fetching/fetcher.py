"""Fetching a source from a URL into a file."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

import aiohttp
import attrs
from multidict import CIMultiDict, MultiMapping
from multipart import content_disposition_unquote, parse_options_header
from yarl import URL

from imgsvc_core._runtime.jsontext import SOMETHING
from imgsvc_core.errors import Problem, SourceFailure, SourceUnreachable, SpecError, invalid
from imgsvc_core.limits import in_words
from imgsvc_http.answering.header_fields import extended_file_name, file_name
from imgsvc_http.fetching.address_guard import AddressGuard, PrivateAddress
from imgsvc_http.fetching.cookies import FetchCookies
from imgsvc_http.fetching.resolver import ACCOUNT, TooManyLookups
from imgsvc_http.fetching.saving import save
from imgsvc_http.fetching.social import FRESH, PLATFORMS, Profile, is_social, profile_of
from imgsvc_http.fetching.source_connection import TooManyInformational
from imgsvc_http.fetching.urls import as_written, authorization, bare, is_web, redirected
from imgsvc_http.settings import FetchSettings, SocialSettings
from imgsvc_http.settings.url_host import parse_url
from imgsvc_http.storage.source_files import Allocate
from imgsvc_stores.failures import first_cause
from imgsvc_urls.errors import SourceRefused

_BUFFER_BYTES = 1 << 16  # it may be full of small chunks, which are all parsed at once
_NO_CONDITIONS: Mapping[str, str] = {}
_NOT_MODIFIED = 304
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_WHOLE = (200, 203)
_PARTIAL = 206
_WHOLE_RANGE = re.compile(r"bytes 0-([0-9]{1,15})/([0-9]{1,15})", re.IGNORECASE)
_FORBIDDEN_HEADERS = frozenset({
    "accept-encoding", "connection", "content-encoding", "content-length", "expect", "forwarded", "host",
    "keep-alive", "origin", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade", "via",
})  # fmt: skip
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VISIBLE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_MOST_HEADER_CHARACTERS = 8000
_MOST_PROFILE_BYTES = 2_000_000


@attrs.frozen
class Fetched:
    """A source that was fetched into a file: its path, its name, and the headers that came with it."""

    path: Path
    name: str
    headers: MultiMapping[str] = attrs.field(factory=CIMultiDict, repr=False)


@attrs.frozen
class NotModified:
    """A source that is still what was fetched before, by the conditions of a fetch."""

    headers: MultiMapping[str] = attrs.field(factory=CIMultiDict, repr=False)


class Fetcher:
    """Fetches sources over one session."""

    def __init__(self, settings: FetchSettings, social: SocialSettings) -> None:
        self._settings = settings
        self._social = social
        self._session = aiohttp.ClientSession(
            connector=AddressGuard.allowing(settings.private_allowed).connector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=_BUFFER_BYTES,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=settings.connect_seconds),
            headers={"User-Agent": settings.user_agent, "Accept-Encoding": "identity"},
        )

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()

    async def fetch(
        self,
        url: str,
        headers: Mapping[str, str],
        allocate: Allocate,
        limit_bytes: int | None,
        *,
        conditions: Mapping[str, str] = _NO_CONDITIONS,
        account: str = "",
        name: str = "",
    ) -> Fetched | NotModified:
        """Fetch the picture at a URL, or the profile picture of ``<platform>:<user>``.

        Args:
            url: where the picture is; it may carry Basic credentials.
            headers: headers to send along. Hosts other than the host of the URL get only the headers in
                `FRESH`. The service's own User-Agent follows one that is given here.
            allocate: gives the file to write.
            limit_bytes: the most bytes.
            conditions: ``If-None-Match`` or ``If-Modified-Since``, sent to the host of the URL.
            account: whose share of what fetching takes it counts in.
            name: what messages call the source, if they are not to tell its address.

        Raises:
            SpecError: the URL or the headers are wrong.
            SourceUnreachable: nothing usable came.
            NoRoom: there is no room for the source.
            EmptySource, SourceTooLarge: too few or too many bytes came.
        """
        check_headers(headers)
        ACCOUNT.set(account)
        try:
            async with asyncio.timeout(self._settings.total_seconds):
                profile = profile_of(url, self._social) if is_social(url) else None
                location, extra = (
                    (_parsed(url), {**self._with_user_agent(headers), **conditions})
                    if profile is None
                    else await self._profile_picture(profile)
                )
                async with self._get(location, extra, profile, name) as response:
                    if response.status == _NOT_MODIFIED and conditions:
                        return NotModified(response.headers)
                    _check_status(response, profile, name)
                    path = await save(
                        response.content.iter_any(),
                        ", ".join(response.headers.getall("Content-Encoding", ())),
                        response.content_length,
                        allocate,
                        limit_bytes,
                        lambda: f"Source '{name or shown_url(str(response.url))}'",
                    )
                    return Fetched(path, _name(response), response.headers)
        except TimeoutError:
            raise SourceUnreachable(
                f"Source '{name or shown_url(url)}' did not answer completely within "
                f"{in_words(self._settings.total_seconds)}.",
                failure="timed_out",
            ) from None

    def _with_user_agent(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Append the service's User-Agent to a client's, so that it always identifies the service."""
        own = self._settings.user_agent
        return {
            name: f"{value} {own}".strip() if name.lower() == "user-agent" else value
            for name, value in headers.items()
        }

    async def _profile_picture(self, profile: Profile) -> tuple[URL, Mapping[str, str]]:
        """Return where a profile picture is, and the headers to fetch it with."""
        location, headers = _parsed(profile.url), {**FRESH, **profile.headers}
        if not profile.platform.path:
            return location, headers
        async with self._get(location, headers, profile) as response:
            _check_status(response, profile)
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > _MOST_PROFILE_BYTES:
                    raise profile.unusable()
        return _parsed(profile.picture_in(bytes(body))), FRESH

    @asynccontextmanager
    async def _get(
        self, location: URL, headers: Mapping[str, str], profile: Profile | None = None, name: str = ""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Give the response after redirects. Messages tell where they start, or the name instead."""
        shown, cookies = name or shown_url(str(location)), FetchCookies()
        headers = {**headers, **authorization(location)}
        for _ in range(self._settings.redirects + 1):
            sent = {**headers, **cookies.header(location, headers)}
            async with await self._request(location, sent, shown) as response:
                if response.status not in _REDIRECTS:
                    try:
                        yield response
                    except aiohttp.ClientError as error:
                        raise _unreachable(error, shown) from error
                    return
                cookies.take(response)
                target = _redirect(location, response.headers.get("Location", ""), shown)
            if target.origin() != location.origin():
                headers = dict(headers.items() & FRESH.items())
            headers = {**headers, **authorization(target)}
            location = target
        raise SourceUnreachable(
            f"Source '{shown}' redirects more than {self._settings.redirects} times: give its final URL."
        )

    async def _request(self, location: URL, headers: Mapping[str, str], shown: str) -> aiohttp.ClientResponse:
        """Return the response of a location, which may be a redirect."""
        try:
            return await self._session.get(bare(location), headers=headers, allow_redirects=False)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
                raise
            # Some errors hold the whole request with all its secrets: of those, only the cause is kept.
            secret = isinstance(error, aiohttp.ClientResponseError | ValueError)
            raise _unreachable(error, shown) from (error.__cause__ if secret else error)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise `SpecError` for headers that cannot be sent along with a fetch."""
    problems = []
    for name, value in headers.items():
        length = len(name) + len(value)
        if not _TOKEN.fullmatch(name) or not _VISIBLE.fullmatch(value) or length > _MOST_HEADER_CHARACTERS:
            reason = "must be names and values of HTTP headers"
        elif name.lower() in _FORBIDDEN_HEADERS:
            reason = "must not hold headers of the connection itself"
        else:
            continue
        problems.append(
            Problem(f"headers.{name[:60]}", f"Fetch 'headers' parameter {reason}", f"got {name[:60]!a}")
        )
    if problems:
        raise SpecError(problems)


def _parsed(url: str) -> URL:
    try:
        parsed = as_written(url)
        usable = is_web(parsed)
    except ValueError:
        usable = False
    if not usable:
        expected = (
            "Fetch 'url' parameter must be a URL that starts with http:// or https://, or <platform>:<user>"
        )
        raise invalid("url", expected, f"got '{shown_url(url)}'")
    return parsed


def _redirect(location: URL, target: str, shown: str) -> URL:
    """Return the target of a redirect."""
    try:
        joined = redirected(location, target) if target else None
    except ValueError:
        joined = None
    if joined is None or not is_web(joined):
        raise SourceUnreachable(f"Source '{shown}' redirects to something that is no http or https URL.")
    return joined


def _check_status(response: aiohttp.ClientResponse, profile: Profile | None, name: str = "") -> None:
    """Raise an error unless the response has a picture."""
    if response.status in (404, 410) and profile is not None:
        raise profile.unknown()
    if response.status not in _WHOLE and not _is_complete(response):
        shown = name or shown_url(str(response.url))
        raise SourceRefused(
            f"Source '{shown}' answered with status {response.status}; expected 200 with an image.",
            status=response.status,
        )


def _is_complete(response: aiohttp.ClientResponse) -> bool:
    """Return True for a partial response that has all bytes, as some servers answer without being asked."""
    found = _WHOLE_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
    if response.status != _PARTIAL or found is None:
        return False
    last, total = int(found[1]), int(found[2])
    return last + 1 == total and response.content_length in (None, total)


def _name(response: aiohttp.ClientResponse) -> str:
    """Return the file name in the headers or the URL."""
    given = _name_in(response.headers.get("Content-Disposition", ""))
    return file_name(given or PurePosixPath(response.url.path).name)


def _name_in(disposition: str) -> str:
    if not disposition:
        return ""
    _, options = parse_options_header(disposition, unquote=content_disposition_unquote)
    return extended_file_name(disposition) or options.get("filename") or ""


def shown_url(url: str) -> str:
    """Return a URL for messages, without credentials and query, which may hold secrets."""
    try:
        parsed = parse_url(url)
    except ValueError:
        return SOMETHING
    if parsed.raw_host:
        return str(bare(parsed).with_query(None))[:200]
    is_profile = url.partition(":")[0].lower() in PLATFORMS and "/" not in url
    return url.partition("?")[0][:200] if is_profile else SOMETHING


def _unreachable(error: BaseException, shown: str) -> SourceUnreachable:
    if (private := first_cause(error, PrivateAddress)) is not None:
        reason = f"'{private.host[:80]}' is not a public address; use a public URL, or upload the image"
    else:
        reason = reason_of(error)
    return SourceUnreachable(f"Source '{shown}' cannot be fetched: {reason}.", failure=_failure_of(error))


def _failure_of(error: BaseException) -> SourceFailure:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "unknown_host"
    if isinstance(error, aiohttp.ServerTimeoutError):
        return "timed_out"
    return "incomplete" if isinstance(error, aiohttp.ClientPayloadError) else "unreachable"


def reason_of(error: BaseException) -> str:
    """Return why a server cannot be reached or understood."""
    if first_cause(error, TooManyLookups) is not None:
        return "the service is looking up too many host names already; try again, or upload the image"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return "its certificate is not valid"
    if isinstance(error, aiohttp.InvalidURL | UnicodeError):
        return "its URL is not valid"
    if isinstance(error, TooManyInformational):
        return "it sends informational responses (status 1xx) without end"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its host name is unknown"
    if isinstance(error, aiohttp.ServerTimeoutError):
        return "it cannot be connected to in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = os.strerror(error.os_error.errno) if error.os_error.errno else "no connection"
        return f"it cannot be connected to ({reason})"
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError | OSError):
        return "the connection ended before the answer was complete"
    return "its answer is no valid HTTP"
