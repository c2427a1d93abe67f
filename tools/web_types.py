"""Write the TypeScript types of the service into web/openapi.ts: ``python tools/web_types.py``.

openapi-typescript makes them from the OpenAPI document, reduced to what the pages use: the JSON answers of
the calls below if they succeed, without descriptions. It needs the packages of web/: ``npm --prefix web ci``.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.answering.json_schema import failure_schema
from imgsvc_http.endpoints import openapi, playground
from imgsvc_http.endpoints.routes import ROUTES

WEB = Path(__file__).parents[1] / "web"
TYPES = WEB / "openapi.ts"
CALLS = {
    ("get", "/1.0/account"),
    ("get", "/1.0/keys"),
    ("get", "/1.0/requests"),
    ("get", "/1.0/watermarks"),
    ("get", "/1.0/webhooks"),
    ("get", "/playground/declarations.json"),
    ("get", "/playground/fonts.json"),
    ("get", "/playground/presets.json"),
    ("post", "/1.0/watermarks"),
    ("post", "/1.0/webhooks/{id}/retry"),
    ("post", "/playground/previews/{source}"),
    ("post", "/playground/scores/{source}"),
    ("post", "/playground/sources"),
    ("post", "/playground/urls"),
}


def main() -> None:
    TYPES.write_text(types())


def types() -> str:
    """Return the types as TypeScript."""
    command = [WEB / "node_modules" / ".bin" / "openapi-typescript"]
    document = json.dumps(used())
    return subprocess.run(command, input=document, check=True, capture_output=True, text=True).stdout


def used() -> dict[str, Any]:
    """Return the part of the OpenAPI document that the pages use."""
    document = openapi.in_full((*ROUTES, *playground.routes(enabled=True)), "", HeaderNames("X-Svc"))
    paths: dict[str, dict[str, Any]] = {}
    for method, path in sorted(CALLS):
        paths.setdefault(path, {})[method] = _successes(document["paths"][path][method])
    return {
        "openapi": document["openapi"],
        "info": {"title": document["info"]["title"], "version": ""},
        "paths": paths,
        "components": {"schemas": {"Failure": _undescribed(failure_schema())}},
    }


def _successes(operation: Mapping[str, Any]) -> dict[str, Any]:
    responses = {}
    for status, response in operation["responses"].items():
        content = response.get("content", {}).get("application/json")
        if status in ("200", "201") and content:
            bare = {"application/json": {"schema": _undescribed(content["schema"])}}
            responses[status] = {"description": "", "content": bare}
    return {"responses": responses}


def _undescribed(schema: Any) -> Any:
    """Return a schema without its words, so that a change of them leaves the types as they are."""
    if isinstance(schema, Mapping):
        return {
            key: _undescribed(value)
            for key, value in schema.items()
            if not (key in ("title", "description", "format") and isinstance(value, str))
        }
    return [_undescribed(item) for item in schema] if isinstance(schema, (list, tuple)) else schema


if __name__ == "__main__":
    main()
