"""The account's pictures in the cache."""

from __future__ import annotations

import attrs

from imgsvc_core.errors import invalid
from imgsvc_http.answering.json_schema import Parameter
from imgsvc_http.cache.entries import source_digest
from imgsvc_http.cache.purging import purge
from imgsvc_http.call import Call
from imgsvc_http.routing import Route

_URL = "url"


@attrs.frozen(kw_only=True)
class PurgeAnswer:
    """How many pictures of the source this node had in its cache."""

    purged: int


async def delete(call: Call) -> PurgeAnswer:
    """Purge all pictures of a source of the account from the cache.

    This node stops answering with them at once, other nodes within a second.
    """
    source = call.request.query.get(_URL)
    if not source:
        raise invalid(_URL, "Query 'url' parameter must be the source of the pictures to purge")
    services = call.services
    digest = source_digest(call.account, source)
    return PurgeAnswer(purged=await purge(services.cache, services.db, digest))


ROUTES = (
    Route(
        "DELETE",
        "/1.0/cache",
        delete,
        "Purge pictures of a source",
        "Cache",
        answer=PurgeAnswer,
        parameters=(
            Parameter(
                name=_URL,
                where="query",
                schema={"type": "string", "minLength": 1},
                doc="The URL of the source, or {origin}/{path}, as it was before the picture's URL was "
                "encoded.",
                required=True,
            ),
        ),
        failures=(422,),
        scope="account",
    ),
)
