"""One request while it is handled, and what the requests of an application have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
from aiohttp import web

from imgsvc_http.answering import responses
from imgsvc_http.answering.bodies import BodiesUnderWay
from imgsvc_http.answering.errors import Refusal
from imgsvc_http.answering.headers import HeaderNames, common_headers
from imgsvc_http.answering.responses import Response
from imgsvc_http.cache.url_memory import UrlMemory
from imgsvc_http.gate.authentication import Principal
from imgsvc_http.gate.rate_limit import RateState
from imgsvc_http.gate.ticket import Ticket
from imgsvc_http.monitoring.access_log import Logged
from imgsvc_http.receiving.body import awaits_continue, read_json
from imgsvc_http.receiving.form import FormFile, read_form
from imgsvc_http.receiving.idempotency import PARAMETER, Keep, keep_nothing, once
from imgsvc_http.receiving.processing_request import response_mode
from imgsvc_http.services import Services
from imgsvc_http.storage.source_files import SourceFile
from imgsvc_http.webhooks.jobs import Webhooks


@attrs.define(eq=False)
class AppState:
    """The objects that all requests of an application share.

    ``urls`` has what is known of the URLs of pictures that were asked for last. ``services`` and ``webhooks``
    are there while the application runs.
    """

    names: HeaderNames
    bodies: BodiesUnderWay
    urls: UrlMemory[Any] = attrs.field(factory=UrlMemory)
    services: Services = attrs.field(init=False)
    webhooks: Webhooks = attrs.field(init=False)


@attrs.define(eq=False, kw_only=True)
class Call(Logged):
    """A request, and what is found out about it on its way.

    Attributes:
        request: as it came.
        app: what it has in common with the other requests.
        services: what handlers work with.
        secure: True if the client's own connection is encrypted.
        principal: who calls, once that is known.
        rate: how often the client has called, once that is counted.
        binary_header: the name of the header that asks for a picture as the answer, if it does.
        may_be_picture: True if the endpoint can answer with a picture, and everything else in a header.
        ticket: what the request holds while it is handled, once it was let in.
        known: what is known of the URL of a picture that was asked for before.
        waited: True if something may have changed since that was looked up.
        document: the JSON document of a processing request, as soon as it was read.
        url: what the URL of a picture asks for, as its endpoint reads it.
    """

    request: web.Request
    app: AppState
    services: Services
    secure: bool = False
    principal: Principal = attrs.field(init=False)
    rate: RateState | None = None
    binary_header: str = ""
    may_be_picture: bool = False
    ticket: Ticket = attrs.field(init=False)
    known: Any = None
    waited: bool = False
    document: Any = None
    url: Any = None

    @property
    def wants_picture(self) -> bool:
        """True if the answer is to be a picture, by the header of the request or by its document."""
        if not self.may_be_picture:
            return False
        return bool(self.binary_header) or response_mode(self.document) == "binary"

    async def json(self, limit: int | None = None) -> Any:
        """Return the JSON body of the request, of at most so many bytes or as many as the settings allow."""
        settings = self.services.settings
        return await read_json(
            self.request,
            limit=settings.limits.json_bytes if limit is None else limit,
            seconds=settings.server.body_seconds,
            pace=self.ticket.pace,
        )

    async def form(
        self,
        into: SourceFile,
        limit: int,
        json_limit: int = 0,
        on_document: Callable[[Any], None] | None = None,
    ) -> FormFile:
        """Read the form of the request as `read_form` does."""
        return await read_form(
            self.request,
            into,
            limit=limit,
            seconds=self.services.settings.server.body_seconds,
            json_limit=json_limit,
            on_document=on_document,
            pace=self.ticket.pace,
        )

    async def once(
        self, parts: Callable[[], Awaitable[tuple[bytes, ...]]], work: Callable[[Keep], Awaitable[Response]]
    ) -> Response:
        """Return the answer of the work, or the one that the key of the request got before: see `once`."""
        if PARAMETER.name not in self.request.headers:
            return await work(keep_nothing)
        return await once(self.services.answers, self.request, self.account, parts, work, self.failure)

    def failure(self, refusal: Refusal) -> Response:
        """Return an error in the mode of the request, and note it."""
        self.error = refusal.slug
        return responses.failure(refusal, self.id, self.app.names if self.wants_picture else None)

    def sent(self, response: Response) -> web.Response:
        """Return a response as aiohttp sends it.

        Raises:
            Refusal: there is no memory for the body.
        """
        headers = {**self._common_headers(), **response.headers}  # a refusal tells the rate that it exceeded
        made = web.Response(status=response.status, headers=headers, body=response.payload(self.app.bodies))
        if "Expect" in self.request.headers or "Connection" in headers:
            self._close_if_told(made)
        return made

    def complete(self, response: web.StreamResponse) -> None:
        """Set the headers of a response that is not made by `sent`, before it is prepared."""
        for name, value in self._common_headers().items():
            response.headers.setdefault(name, value)
        self._close_if_told(response)

    def _common_headers(self) -> dict[str, str]:
        server = self.services.settings.server
        headers = common_headers(self.id, {} if self.rate is None else self.rate.headers)
        if self.secure and server.strict_transport_security:
            headers["Strict-Transport-Security"] = server.strict_transport_security
        return headers

    def _close_if_told(self, response: web.StreamResponse) -> None:
        if awaits_continue(self.request):
            response.headers["Connection"] = "close"  # the body was not asked for, and must not follow
        if response.headers.get("Connection") == "close":
            response.force_close()
