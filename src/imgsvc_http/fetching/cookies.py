"""Cookies that servers set while one source is fetched."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import ClientResponse, CookieJar
from yarl import URL


class FetchCookies:
    """Cookies of one fetch, as redirects to a page that sets a cookie need them.

    A cookie goes back to the server that has set it, and to no other one of its domain.
    """

    def __init__(self) -> None:
        self._jars: dict[tuple[str | None, int | None], CookieJar] = {}

    def take(self, response: ClientResponse) -> None:
        """Keep the cookies of a response."""
        if "Set-Cookie" in response.headers:
            # Hosts may be addresses, and values are sent back as they came.
            jar = self._jars.setdefault(_server(response.url), CookieJar(unsafe=True, quote_cookie=False))
            jar.update_cookies(response.cookies, response.url)

    def header(self, location: URL, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the header that sends the cookies of a location, before those of other headers."""
        jar = self._jars.get(_server(location))
        if jar is None:
            return {}
        own = [f"{cookie.key}={cookie.coded_value}" for cookie in jar.filter_cookies(location).values()]
        given = [value for name, value in headers.items() if name.lower() == "cookie"]
        return {"Cookie": "; ".join(own + given)} if own else {}


def _server(location: URL) -> tuple[str | None, int | None]:
    """Return what is the same for http and https at their own ports."""
    return location.raw_host, location.explicit_port
