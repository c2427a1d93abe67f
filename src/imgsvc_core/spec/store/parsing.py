"""Parse the ``store`` of a request, write it as JSON, and describe it as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from imgsvc_core._runtime.jsontext import SOMETHING, shown
from imgsvc_core.errors import invalid
from imgsvc_core.spec.declare import operation_schema
from imgsvc_core.spec.kinds import Choice
from imgsvc_core.spec.parsing import parse_operation, unparse_operation
from imgsvc_core.spec.store.declarations import PROVIDERS, StoreSpec

_PROVIDER = Choice(tuple(PROVIDERS))


def parse_store(value: object) -> StoreSpec:
    """Return the store that a JSON value describes.

    Raises:
        SpecError: with all problems found, each with its path.

    >>> parse_store({"provider": "ibm", "key": "k", "bucket": "pictures", "region": "eu-de"}).bucket
    'pictures'
    """
    if isinstance(value, StoreSpec):
        return value
    if not isinstance(value, Mapping):  # not shown: it may hold a secret
        raise invalid("store", "Store must be an object of parameters", f"got {SOMETHING}")
    expected = f"Store 'provider' parameter must be {_PROVIDER.expectation}"
    if "provider" not in value:
        raise invalid("store.provider", expected, "and is required")
    try:
        provider = PROVIDERS[_PROVIDER.parse(value["provider"])]
    except ValueError:
        got = shown(value["provider"]) if isinstance(value["provider"], int | float) else SOMETHING
        raise invalid("store.provider", expected, f"got {got}") from None
    rest = {name: item for name, item in value.items() if name != "provider"}
    return parse_operation(provider, rest, path="store")


def shown_name(value: str) -> str:
    """Return a name for a message. It is masked if it looks like a keyfile or is not valid Unicode."""
    try:
        value.encode()
    except ValueError:
        return SOMETHING
    return SOMETHING if value.lstrip().startswith("{") else shown(value)


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
