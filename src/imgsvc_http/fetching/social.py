"""Profile pictures of social platforms, asked for as ``<platform>:<user>``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import attrs

from imgsvc_core._runtime.jsontext import SOMETHING
from imgsvc_core.errors import SourceUnreachable, invalid
from imgsvc_http.settings import SocialSettings

FRESH: Mapping[str, str] = {"Cache-Control": "no-cache", "Pragma": "no-cache"}
"""Headers that bypass caches, since profile pictures are never cached."""


@attrs.frozen
class Platform:
    """How the picture of a user is found.

    ``user`` is the pattern of a user part, ``expectation`` the same in words. ``path`` is the place of the
    picture's URL in a JSON answer; without it, the address is that of the picture itself. ``token`` says how
    an access token is sent: as a bearer token or in the query. With ``needs_token`` the platform gives no
    picture without one. ``larger`` turns the URL of a picture into that of a larger one.
    """

    name: str
    user: re.Pattern[str]
    expectation: str
    path: tuple[str, ...] = ()
    token: str = "bearer"
    needs_token: bool = False
    headers: Mapping[str, str] = attrs.field(factory=dict)
    larger: Callable[[str], str] = str


PLATFORMS: Mapping[str, Platform] = {
    platform.name: platform
    for platform in (
        Platform("facebook", re.compile(r"[0-9]{1,30}"), "numeric user id", token="query", needs_token=True),
        Platform(
            "twitter",
            re.compile(r"[A-Za-z0-9_]{1,15}"),
            "user name of letters, digits and underscores",
            path=("data", "profile_image_url"),
            needs_token=True,
            larger=lambda url: re.sub(r"_normal(\.\w+)$", r"\1", url),
        ),
        Platform(
            "instagram",
            re.compile(r"[A-Za-z0-9._]{1,30}"),
            "user name of letters, digits, periods and underscores",
            path=("data", "user", "profile_pic_url_hd"),
            headers={"X-IG-App-ID": "936619743392459"},
        ),
        Platform("github", re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})"), "user name"),
        Platform("gravatar", re.compile(r"[^\s@]{1,64}@[^\s@]{1,255}"), "e-mail address"),
    )
}
"""The platforms by name."""

_OWN_ADDRESSES = {name: attrs.fields_dict(SocialSettings)[f"{name}_url"].default for name in PLATFORMS}


@attrs.frozen
class Profile:
    """A user of a platform, and the request for the picture."""

    platform: Platform
    user: str
    url: str = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)

    def unknown(self) -> SourceUnreachable:
        """Return the error of a user that does not exist or has no picture."""
        name = self.platform.name
        return SourceUnreachable(f"Source '{name}:{self.user}' has no profile picture: check the user.")

    def unusable(self) -> SourceUnreachable:
        """Return the error of an answer that cannot be read."""
        return SourceUnreachable(
            f"Source '{self.platform.name}:{self.user}' cannot be fetched: the platform's answer names no "
            "picture."
        )

    def picture_in(self, body: bytes) -> str:
        """Return the URL of the picture in an answer of a platform that tells it."""
        try:
            value: Any = json.loads(body)
        except ValueError:
            raise self.unusable() from None
        for key in self.platform.path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            raise self.unknown()
        if not isinstance(value, str) or not value.startswith(("https://", "http://")):
            raise self.unusable()
        return self.platform.larger(value)


def is_social(url: str) -> bool:
    """Return True if a URL has the form ``<platform>:<user>``, with any platform."""
    scheme, colon, rest = url.partition(":")
    return bool(colon) and not rest.startswith("//") and scheme.isalpha()


def profile_of(url: str, settings: SocialSettings) -> Profile:
    """Return the profile that ``<platform>:<user>`` names.

    Raises:
        SpecError: the platform is unknown, or the user part is not valid there.
        SourceUnreachable: the platform needs an access token, and the service has none.
    """
    name, _, user = url.partition(":")
    platform = PLATFORMS.get(name.lower())
    if platform is None:
        known = ", ".join(PLATFORMS)
        expected = (
            "Fetch 'url' parameter must be a URL that starts with http:// or https://, or <platform>:<user> "
            f"with one of {known}"
        )
        raise invalid("url", expected, f"got '{name[:40]}:'")
    user = user.strip()
    if not platform.user.fullmatch(user):
        expected = f"Fetch 'url' parameter must be {name.lower()}: and a {platform.expectation}"
        raise invalid("url", expected, f"got {SOMETHING}")
    template, token = (getattr(settings, f"{platform.name}_{part}") for part in ("url", "token"))
    if platform.needs_token and not token and template == _OWN_ADDRESSES[platform.name]:
        raise SourceUnreachable(
            f"Source '{platform.name}:{user}' cannot be fetched: the service has no access token of "
            f"{platform.name}; the operator sets social.{platform.name}_token."
        )
    digest = hashlib.sha256(user.lower().encode()).hexdigest()
    address = template.replace("{user}", quote(user, safe="")).replace("{hash}", digest)
    headers = dict(platform.headers)
    if token and platform.token == "query":
        address += ("&" if "?" in address else "?") + "access_token=" + quote(token, safe="")
    elif token:
        headers["Authorization"] = f"Bearer {token}"
    return Profile(platform, user, address, headers)
