"""Origins: named places that URLs of pictures take their sources from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from imgsvc_core.errors import SpecError
from imgsvc_http.settings.kinds import Url
from imgsvc_http.settings.problems import wrong_setting
from imgsvc_urls import is_origin_name

_PATH = "delivery.origins"
_URL = Url()


@attrs.frozen
class Origin:
    """A place of sources. ``options`` are arguments of its file system in fsspec, such as credentials."""

    url: str = attrs.field(repr=False)
    options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)

    @property
    def is_web(self) -> bool:
        """True if sources are fetched over HTTP."""
        return self.url.startswith(("http://", "https://"))

    @property
    def is_local(self) -> bool:
        """True if sources are files of this machine."""
        return self.url.startswith(("file://", "local://"))


class Origins:
    """Origins by name, each a URL, or a table with ``url`` and the options of its file system."""

    expectation = 'table of names and URLs, such as {photos = "s3://bucket/folder"}'

    def parse(self, value: object) -> dict[str, Origin]:
        if not isinstance(value, Mapping):
            raise ValueError(value)
        return {name: _origin(name, item) for name, item in value.items()}

    def unparse(self, value: Mapping[str, Origin]) -> dict[str, Any]:
        return {
            name: {"url": item.url, **item.options} if item.options else item.url
            for name, item in value.items()
        }


def _origin(name: object, value: object) -> Origin:
    if isinstance(value, Origin):
        return value
    if not isinstance(name, str) or not is_origin_name(name):
        expected = "must have a name of lower-case letters, digits, - and _ that is no option of URLs"
        raise _wrong(str(name)[:60], expected)
    options = dict(value) if isinstance(value, Mapping) else {}
    try:
        url = _URL.parse(options.pop("url", None) if isinstance(value, Mapping) else value)
    except ValueError:
        expected = (
            "must be a URL such as https://example.org/photos, file:///srv/photos or s3://bucket/photos"
        )
        raise _wrong(name, f"{expected}, or a table with such a url") from None
    origin = Origin(url, options)
    if origin.is_web and options:
        raise _wrong(name, "must have no options beside its url, as it is fetched over HTTP")
    return origin


def _wrong(name: str, how: str) -> SpecError:
    return wrong_setting(f"{_PATH}.{name}", how)
