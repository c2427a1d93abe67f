"""What trusted proxies tell of a client: its address, and whether its connection is encrypted."""

from __future__ import annotations

import ipaddress

from aiohttp import web

from imgsvc_http.settings.sections import Networks


def is_secure(request: web.BaseRequest, proxies: Networks) -> bool:
    """Return True if the client's own connection is encrypted."""
    forwarded = request.headers.get("X-Forwarded-Proto") if _is_trusted(request, proxies) else None
    return request.secure if forwarded is None else forwarded.strip().lower() == "https"


def client_address(request: web.BaseRequest, proxies: Networks) -> str:
    """Return the address that the client calls from, as far as it can be trusted."""
    if _is_trusted(request, proxies):
        for hop in reversed(",".join(request.headers.getall("X-Forwarded-For", ())).split(",")):
            try:
                address = ipaddress.ip_address(hop.strip())
            except ValueError:
                break
            if not any(address in network for network in proxies):
                return str(address)
    return request.remote or ""


def _is_trusted(request: web.BaseRequest, proxies: Networks) -> bool:
    if not proxies:
        return False
    try:
        address = ipaddress.ip_address(request.remote or "")
    except ValueError:
        return False
    return any(address in network for network in proxies)
