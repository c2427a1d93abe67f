"""What is known of a request while it is handled."""

from __future__ import annotations

from aiohttp import web

from imgsvc_http.access.rate_limit import RateState
from imgsvc_http.state.keys import Principal

REQUEST_ID = web.RequestKey("request_id", str)
PRINCIPAL = web.RequestKey("principal", Principal)
RATE = web.RequestKey("rate", RateState)
BINARY = web.RequestKey("binary", bool)
"""Whether the answer is to be a picture, with everything else in a header."""
INVITED = web.RequestKey("invited", bool)
"""There, where a client that held its body back was told to send it."""
