"""The path of a URL of imgproxy: signature, options and source."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable, Sequence

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.spec.options import from_base64
from imgsvc_urls.dialects.imgproxy.arguments import FORBIDDEN, NOT_FOUND, RESIZING_TYPES, not_found
from imgsvc_urls.dialects.imgproxy.options import Segment
from imgsvc_urls.dialects.imgproxy.sources import decrypted
from imgsvc_urls.dialects.reading import WRONG_SIGNATURE, decoded, is_one_of
from imgsvc_urls.errors import DialectError

_LOST_SLASHES = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):/(?!/)")


@attrs.frozen
class SourceText:
    """The source of a URL, decoded, and the extension after it."""

    text: str
    extension: str | None


def mended(path: str) -> str:
    """Return a path as it was before colons were escaped, a slash doubled, or slashes of the source lost.

    >>> mended("/unsafe/w%3A80/plain/https:/pics.example/a.jpg")
    '/unsafe/w:80/plain/https://pics.example/a.jpg'
    """
    signature, slash, rest = path.removeprefix("/").partition("/")
    options, plain, source = f"/{rest}".partition("/plain/")
    options = options.replace("%3A", ":").removeprefix("/").removeprefix("/")
    source = _LOST_SLASHES.sub(lambda found: f"{found[1]}://{'/' if found[1] == 'local' else ''}", source)
    return f"/{signature}{slash}{options}{plain if options else plain.removeprefix('/')}{source}"


def sign(key: bytes, salt: bytes, text: str, size: int = 32) -> str:
    """Return the signature of all that follows it in a path, from its slash on."""
    digest = hmac.digest(key, salt + text.encode("utf-8", "surrogatepass"), "sha256")
    return base64.urlsafe_b64encode(digest[:size]).rstrip(b"=").decode("ascii")


def verified(path: str, pairs: Sequence[tuple[bytes, bytes]], size: int, trusted: Iterable[str]) -> str:
    """Return all of a path after its signature. Takes constant time for each pair of key and salt.

    Raises:
        DialectError: the signature is that of none of the pairs.
    """
    signature, slash, rest = path.removeprefix("/").partition("/")
    text = slash + rest
    if not pairs:
        if ":" in signature:
            message = f"The URL must begin with a signature or any word, got {shown(signature)}."
            raise DialectError(message, status=FORBIDDEN)
        return text
    if not is_one_of(signature, [*(sign(key, salt, text, size) for key, salt in pairs), *trusted]):
        raise DialectError(WRONG_SIGNATURE, status=FORBIDDEN)
    return text


def split(
    text: str,
    *,
    separator: str = ":",
    names_file: bool = False,
    only_presets: bool = False,
    encryption_key: bytes | None = None,
) -> tuple[list[Segment], SourceText]:
    """Return the options and the source of a path after its signature.

    Args:
        text: the path after the signature, as it was sent.
        separator: what separates an option and its arguments.
        names_file: whether a base64 source ends with a file name, which is dropped.
        only_presets: whether the first segment is a list of presets, and there are no options.
        encryption_key: the key of encrypted sources, if there may be any.

    Raises:
        DialectError: the path cannot be read.
    """
    segments = text.removeprefix("/").split("/")
    if only_presets:
        presets, *rest = segments
        return [("preset", decoded(presets, NOT_FOUND).split(separator))], _source(
            rest, names_file, encryption_key
        )
    if segments[0] in RESIZING_TYPES:
        message = "The old form of URLs, /type/width/height/gravity/enlarge/, is not supported: use options."
        raise not_found(message)
    options: list[Segment] = []
    for segment in segments:
        name, *arguments = decoded(segment, NOT_FOUND).split(separator)
        if not arguments:
            break
        options.append((name, arguments))
    return options, _source(segments[len(options) :], names_file, encryption_key)


def _source(segments: Sequence[str], names_file: bool, encryption_key: bytes | None) -> SourceText:
    head, rest = (segments[0], segments[1:]) if segments else ("", ())
    if head == "plain" and rest:
        text, extension = _with_extension("/".join(rest), "@")
        return SourceText(decoded(text, NOT_FOUND), extension)
    encrypted = head == "enc" and bool(rest)
    parts = rest if encrypted else segments
    if names_file and len(parts) > 1:
        parts = parts[:-1]
    text, extension = _with_extension("".join(parts), ".")
    return SourceText(_decrypted(text, encryption_key) if encrypted else _from_base64(text), extension)


def _with_extension(text: str, mark: str) -> tuple[str, str | None]:
    source, *extensions = text.split(mark)
    if not source:
        raise not_found("The URL must name a source after its options, got none.")
    if len(extensions) > 1:
        raise not_found(f"The source must have one extension after '{mark}', got {shown(text)}.")
    return source, extensions[0] if extensions and extensions[0] else None


def _from_base64(text: str) -> str:
    try:
        return from_base64(text).decode()
    except ValueError:
        message = f"The source must be plain/URL, or a URL in URL-safe base64, got {shown(text)}."
        raise not_found(message) from None


def _decrypted(text: str, key: bytes | None) -> str:
    if key is None:
        message = "The source must not be encrypted, as there is no source_url_encryption_key."
        raise not_found(message)
    try:
        return decrypted(text, key)
    except ValueError:
        message = f"The source after enc/ must be encrypted with the key of this service, got {shown(text)}."
        raise not_found(message) from None
