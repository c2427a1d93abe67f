"""Results that go to an object store: ``imgsvc process --store FILE``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

import imgsvc_core as imgsvc
from imgsvc_core import stores
from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.jsontext import shown
from imgsvc_core.spec.rules import NotTogether

_NAME = re.compile(r"[^\x00-\x1f\x7f/\\\ud800-\udfff]+")
_VARIABLE = "IMGSVC_STORE_"


@attrs.frozen
class Destination:
    """A store, and the keyfile that it names: for a command, the id of a keyfile is its path."""

    spec: stores.StoreSpec
    keyfiles: Mapping[str, Mapping[str, Any]] = attrs.field(repr=False)

    @classmethod
    def of(cls, document: Mapping[str, Any], environment: Mapping[str, str]) -> Destination:
        """The destination of a JSON object, with the credentials that it leaves to the environment.

        Raises:
            SpecError: the store is wrong, or its keyfile is none.
        """
        spec = stores.parse_store({**document, **_credentials(document, environment)})
        path = getattr(spec, "keyfile", None)
        return cls(spec, {} if path is None else {path: _keyfile(path)})

    @property
    def folder(self) -> bool:
        """Whether every result has a name of its own there."""
        return not self.spec.path or self.spec.path.endswith("/")

    def write(self, result: imgsvc.Result, stem: str) -> str:
        """Store a result under its own name; its URL.

        Raises:
            SpecError: the store can have nothing of that name.
        """
        assert result.data is not None
        format = imgsvc.FORMATS[result.output.format]
        name = f"{stem if self.folder else 'result'}{format.suffix}"
        if not _NAME.fullmatch(name):
            written = name.encode("utf-8", "backslashreplace").decode()
            message = (
                f"The result's name {shown(written)} cannot be one in a store: "
                "give its whole name as 'path' in the store document, or rename the source"
            )
            raise SpecError([Problem("store.path", message)])
        return stores.write(self.spec, result.data, name, format.media_type, keyfiles=self.keyfiles)


def _credentials(document: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """What the environment has of the credentials that the document leaves out, or names as null.

    Where a provider knows several kinds of them, as Google does, they are of the document's kind, if it names
    one, and otherwise all that the environment has: a choice between two is the user's to make.
    """
    provider = stores.PROVIDERS.get(str(document.get("provider")))
    if provider is None:
        return {}
    named = {name for name in provider.credentials if document.get(name) is not None}
    kinds = [kind for kind in _kinds(provider) if not named or named & set(kind)]
    found = {
        name: environment.get(_VARIABLE + name.upper())
        for kind in kinds
        for name in kind
        if name not in named
    }
    return {name: value for name, value in found.items() if value}


def _kinds(provider: type[stores.StoreSpec]) -> list[tuple[str, ...]]:
    """The credentials of a provider, those together that belong together."""
    apart = [rule for rule in provider.rules if isinstance(rule, NotTogether)]
    return [side for rule in apart for side in (rule.first, rule.second)] or [provider.credentials]


def _keyfile(path: str) -> dict[str, Any]:
    if path.lstrip().startswith("{"):  # which is not repeated: it holds a private key
        message = "Store 'keyfile' parameter must name a JSON file, got the text of one"
        raise SpecError([Problem("store.keyfile", message)])
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"Store 'keyfile' parameter must name a JSON file, got '{path}': {reason}"
        raise SpecError([Problem("store.keyfile", message)]) from error
    if not isinstance(found, dict):
        raise SpecError([Problem("store.keyfile", f"The keyfile '{path}' must be a JSON object")])
    return found
