"""The resources that a request holds while it is handled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from imgsvc_http.answering.errors import refusal

if TYPE_CHECKING:
    from imgsvc_http.services import Services


@attrs.define(eq=False)
class Ticket:
    """The place of a request among those of its client, and its part of the connections.

    Args:
        services: they have the places.
        client: whose request it is: an account, or an address.
    """

    services: Services
    client: str
    _is_under_way: bool = attrs.field(init=False, default=False)
    _has_connection: bool = attrs.field(init=False, default=False)

    async def begin(self) -> None:
        """Wait until the request may begin."""
        await self.services.pacing.begin(self.client)
        self._is_under_way = True

    async def pace(self) -> None:
        """Wait until another part of the body may be read."""
        await self.services.pacing.wait(self.client)

    def take_connection(self) -> None:
        """Count the connection for its client. Raise `Refusal` if others need what is left."""
        if not self.services.connections.take(self.client):
            raise refusal("overloaded")
        self._has_connection = True

    def close(self) -> None:
        """Give everything back."""
        if self._has_connection:
            self.services.connections.give_back(self.client)
        if self._is_under_way:
            self.services.pacing.end(self.client)
