"""Sources in URLs of imgproxy: what is replaced in them, and which origins they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import SpecError, invalid
from imgsvc_core.spec.options import from_base64
from imgsvc_urls.dialects.imgproxy.arguments import not_found
from imgsvc_urls.dialects.wildcards import climbs, url_pattern
from imgsvc_urls.sources import Source, is_origin_name, source_of

Pairs: TypeAlias = tuple[tuple[str, str], ...]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_GROUP = re.compile(r"\$(?:\{([0-9]+)\}|([0-9]+))")
_BLOCK = 16  # bytes of AES


@attrs.frozen
class Sources:
    """How the text of a source becomes a source, in this order.

    Args:
        replacements: patterns of the beginnings of sources, and what takes their place.
        base_urls: what sources begin with; the first one is put before any other source.
        allowed: patterns of the beginnings that sources must have; any if empty.
        origins: origins, or folders in them, by the beginnings of sources that they stand for.
    """

    replacements: tuple[tuple[re.Pattern[str], str], ...]
    base_urls: tuple[str, ...]
    allowed: tuple[re.Pattern[str], ...]
    origins: Mapping[str, str]

    def source(self, text: str) -> Source:
        """Return a source.

        Raises:
            DialectError: the text is none.
        """
        for pattern, replacement in self.replacements:
            if (found := pattern.match(text)) is not None:
                text = _expanded(replacement, found) + text[found.end() :]
        if self.base_urls and not text.startswith(self.base_urls):
            text = self.base_urls[0] + text
        if (scheme := _SCHEME.match(text)) is not None:
            text = scheme[0].lower() + text[scheme.end() :]
        if self.allowed and (climbs(text) or not any(pattern.match(text) for pattern in self.allowed)):
            raise not_found(f"The source must begin as 'allowed_sources' tell, got {shown(text)}.")
        try:
            return source_of(self._in_origin(text))
        except SpecError as error:
            raise not_found(f"{error.message}.") from error

    def _in_origin(self, text: str) -> str:
        """Return the origin and the path of a source below one, and any other source unchanged."""
        start = max((item for item in self.origins if text.startswith(item)), default=None)  # the longest
        if start is None:
            scheme = _SCHEME.match(text)
            if scheme is not None and scheme[0] not in ("http://", "https://"):
                expected = "must begin with http://, https://, or a key of the setting 'origins'"
                raise not_found(f"The source {expected}, got {shown(text)}.")
            return text
        path, _, query = text.removeprefix(start).partition("?")
        if query and not start.startswith("local:"):
            raise not_found(f"The source must not name a version of an object, got {shown(text)}.")
        return f"{self.origins[start].rstrip('/')}/{path.lstrip('/')}"


def read_sources(
    replacements: Pairs, base_urls: tuple[str, ...], allowed: tuple[str, ...], origins: Pairs
) -> Sources:
    """Return the rules that settings describe.

    Raises:
        SpecError: a setting is wrong; the problem names it.
    """
    for pattern, replacement in replacements:
        if any(_group(found) > pattern.count("*") for found in _GROUP.finditer(replacement)):
            message = f"must have as many wildcards as their replacements name, got {shown(pattern)}"
            raise invalid("url_replacements", f"Patterns of 'url_replacements' {message}")
    for start, origin in origins:
        if not start or not is_origin_name(origin.partition("/")[0]):
            message = 'must be beginnings of URLs and origins such as {"s3://bucket/" = "photos/"}'
            raise invalid("origins", f"'origins' {message}, got {shown({start: origin})}")
    patterns = tuple((url_pattern(pattern), replacement) for pattern, replacement in replacements)
    return Sources(patterns, base_urls, tuple(map(url_pattern, allowed)), dict(origins))


def _expanded(replacement: str, found: re.Match[str]) -> str:
    """Return a replacement with the texts of wildcards for ``${1}``, ``${2}`` and so on."""
    return _GROUP.sub(lambda mark: found[_group(mark)], replacement)


def _group(mark: re.Match[str]) -> int:
    return int(mark[1] or mark[2])


def decrypted(text: str, key: bytes) -> str:
    """Return a source that is encrypted with AES-CBC, in URL-safe base64 after its initialization vector.

    Raises:
        ValueError: it is not. All reasons look the same, so that nobody can guess texts by them.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    data = from_base64(text)
    cipher = Cipher(algorithms.AES(key), modes.CBC(data[:_BLOCK])).decryptor()
    padded = cipher.update(data[_BLOCK:]) + cipher.finalize()
    unpadder = PKCS7(8 * _BLOCK).unpadder()
    return (unpadder.update(padded) + unpadder.finalize()).decode()
