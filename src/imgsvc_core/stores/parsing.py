"""Parse the ``store`` of a request, write it as JSON, and describe it as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.jsontext import SOMETHING, shown
from imgsvc_core.spec.declare import params
from imgsvc_core.spec.kinds import Choice, Kind
from imgsvc_core.spec.parsing import parse_operation, unparse_operation
from imgsvc_core.spec.schema import operation_schema
from imgsvc_core.stores.declarations import PROVIDERS, StoreSpec

_PROVIDER = Choice(tuple(PROVIDERS))


def parse_store(value: object, *, path: str = "store") -> StoreSpec:
    """Return the store that a JSON value describes.

    Raises:
        SpecError: with all problems found, each with its path.

    >>> parse_store({"provider": "ibm", "key": "k", "bucket": "pictures", "region": "eu-de"})
    Ibm(path='', bucket='pictures', region='eu-de', acl='public-read')
    """
    if isinstance(value, StoreSpec):
        return value
    if not isinstance(value, Mapping):  # not shown: it may hold a secret
        raise SpecError([Problem(path, f"Store must be an object of parameters, got {SOMETHING}")])
    if "provider" not in value:
        message = f"Store 'provider' parameter is required and must be {_PROVIDER.expectation}"
        raise SpecError([Problem(f"{path}.provider", message)])
    try:
        provider = PROVIDERS[_PROVIDER.parse(value["provider"])]
    except ValueError:
        got = shown(_displayable(_PROVIDER, value["provider"]))
        message = f"Store 'provider' parameter must be {_PROVIDER.expectation}, got {got}"
        raise SpecError([Problem(f"{path}.provider", message)]) from None
    declared = params(provider)
    fields = {
        name: _displayable(declared[name].kind, item) if name in declared else item
        for name, item in value.items()
        if name != "provider"
    }
    return parse_operation(provider, fields, path=path)


class _Masked:
    def __repr__(self) -> str:
        return SOMETHING


def displayable(value: str) -> object:
    """Return a string as messages may show it: masked if it looks like a keyfile or is not valid Unicode."""
    try:
        value.encode()
    except ValueError:
        return _Masked()
    return _Masked() if value.lstrip().startswith("{") else value


def _displayable(kind: Kind, value: object) -> object:
    """Return a value as messages may show it. A value of a wrong type may be a misplaced secret."""
    if value is None:
        return value
    if (
        isinstance(value, str)
        and kind.schema().get("type", "string") == "string"
        and displayable(value) is value
    ):
        return value
    try:
        kind.parse(value)
    except ValueError:
        return _Masked()
    return value


def unparse_store(spec: StoreSpec) -> dict[str, Any]:
    """Return the JSON object of a store, with its secrets and without defaults."""
    return {"provider": spec.provider, **unparse_operation(spec)}


def store_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``store``: one of the providers' objects."""
    return {"title": "Store", "type": "object", "oneOf": [_schema(item) for item in PROVIDERS.values()]}


def _schema(provider: type[StoreSpec]) -> dict[str, Any]:
    schema = operation_schema(provider)
    return {
        **schema,
        "title": f"Store {provider.provider}",
        "properties": {"provider": {"const": provider.provider}, **schema["properties"]},
        "required": ["provider", *schema.get("required", [])],
    }
