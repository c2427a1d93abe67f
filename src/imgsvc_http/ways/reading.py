"""Reading URLs of pictures: who signed them, and what they ask for."""

from __future__ import annotations

import functools

from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.call import Call
from imgsvc_http.gate.authentication import Principal
from imgsvc_http.runtime.clock import now
from imgsvc_urls import INFO_ROOT, ROOT, OriginSource, PictureUrl, parse, split, verify
from imgsvc_urls.errors import InvalidSignature

_parsed = functools.lru_cache(1024)(parse)  # pictures of a page are asked for again and again


async def signer_of(call: Call) -> Principal:
    """Return the account that signed the URL of a request, or that pays for URLs without a signature.

    Keep the path after the signature, as it was sent, as what the URL asks for.

    Raises:
        InvalidSignature: the URL is signed with no key that works.
    """
    services = call.services
    root = INFO_ROOT if call.endpoint.startswith(INFO_ROOT) else ROOT
    path = call.request.message.path.partition(root)[2]
    signed = split(path)
    if signed.key_id is None and services.settings.delivery.unsigned:
        call.url = signed.text
        return Principal(services.settings.delivery.unsigned, None, frozenset())
    found = None if signed.key_id is None else await services.signing_keys.get(signed.key_id)
    call.url = verify(path, {} if found is None else {found.key.id: found.secret})
    assert found is not None
    return Principal(found.key.account_id, found.key.id, frozenset())


def read_url(call: Call, *, is_signed: bool) -> PictureUrl:
    """Return what the URL of a request asks for.

    Raises:
        SpecError: the URL is wrong, or has options although only presets are allowed.
        UrlExpired: it is not valid any more.
        InvalidSignature: it is not signed, and asks for more than unsigned URLs may.
    """
    url = _parsed(call.url)
    url.check_expiry(now().timestamp())
    if not is_signed and not isinstance(url.source, OriginSource):
        raise InvalidSignature("Unsigned URLs must take their source from a named origin: sign the URL.")
    if url.options and not is_signed:
        raise InvalidSignature(
            f"Unsigned URLs must name presets only, got the option '{next(iter(url.options))}': sign the "
            "URL, or write a preset."
        )
    if url.options and call.services.settings.delivery.presets_only:
        raise SpecError(
            Problem(name, f"Option '{name}' must be part of a preset, since this service allows presets only")
            for name in url.options
        )
    return url
