"""Endpoints of things that an account uploads: create, list, get, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import attrs

from imgsvc_http.answering.answers import Deleted
from imgsvc_http.answering.errors import refusal
from imgsvc_http.answering.json_schema import path_parameter
from imgsvc_http.call import Call
from imgsvc_http.routing import Handler, Route, Schema
from imgsvc_http.state.owned import Owned

T = TypeVar("T", bound=attrs.AttrsInstance)


def collection_routes(
    name: str,
    owned: Owned[T],
    create: Handler,
    *,
    shown: Callable[[T], attrs.AttrsInstance],
    one: Callable[..., Any],
    many: Callable[..., Any],
    bodies: Mapping[str, Schema],
) -> tuple[Route, ...]:
    """Return the routes of a kind of things.

    Args:
        name: the kind, such as ``watermark``.
        owned: the things.
        create: handles the upload of one.
        shown: returns the public facts of a thing.
        one: the class of the answer with one thing, whose field has the name.
        many: the class of the answer with all of them, whose field has the name in the plural.
        bodies: the schemas of an upload by content type.
    """

    async def list_all(call: Call) -> attrs.AttrsInstance:
        found = await owned.list_all(call.services.db, call.account)
        answer: attrs.AttrsInstance = many(**{f"{name}s": tuple(map(shown, found))})
        return answer

    async def get(call: Call) -> attrs.AttrsInstance:
        id_ = call.request.match_info["id"]
        found = await owned.get(call.services.db, call.account, id_)
        if found is None:
            raise refusal("not_found", what=name)
        answer: attrs.AttrsInstance = one(**{name: shown(found)})
        return answer

    async def delete(call: Call) -> attrs.AttrsInstance:
        id_ = call.request.match_info["id"]
        if not await owned.delete(call.services.db, call.account, id_):
            raise refusal("not_found", what=name)
        return Deleted(id=id_)

    list_all.__doc__ = f"Return all {name}s of the account, oldest first."
    get.__doc__ = f"Return one {name} of the account."
    delete.__doc__ = f"Delete a {name} of the account."

    def route(method: str, path: str, handler: Handler, summary: str, answer: Any, **more: Any) -> Route:
        return Route(
            method, path, handler, summary, f"{name}s".title(), answer=answer, scope="account", **more
        )

    all_path, one_path = f"/1.0/{name}s", f"/1.0/{name}s/{{id}}"
    of_one = {"parameters": (path_parameter("id", f"Id of a {name}."),), "failures": (404,)}
    created = {"status": HTTPStatus.CREATED, "bodies": bodies, "idempotent": True}
    return (
        route("POST", all_path, create, f"Upload a {name}", one, **created),
        route("GET", all_path, list_all, f"List the {name}s", many),
        route("GET", one_path, get, f"Get a {name}", one, **of_one),
        route("DELETE", one_path, delete, f"Delete a {name}", Deleted, **of_one),
    )
